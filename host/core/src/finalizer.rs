//! A module's finalizer on its primaries (rule 13): what it says about one primary now.
//!
//! A finalizer is written before the first object is made for a primary, never on one that is
//! being deleted. With it, the guest is asked once more before a primary goes. It comes
//! off when nothing is left to do, and when the module has nothing to do with the primary
//! any more: else nobody could ever delete it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fieldset::{Element, FieldSet};
use crate::object::{Entry, Operation};
use crate::{Manager, Object, ObjectRef};

/// Before the module's name, the name of a finalizer whose guest gives none.
const PREFIX: &str = "innkeeper.dev/";

/// A module's finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizer {
    /// Its name; `None` if the guest wants none.
    name: Option<String>,
    manager: Manager,
}

/// What is to be done for a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerAction {
    /// Nothing: it is not the module's, or it goes and nobody wants to be asked.
    Nothing,
    /// It is reconciled.
    Reconcile,
    /// The finalizer is written first.
    Add,
    /// It goes, and the guest is asked what is left to do.
    Finalize,
    /// The module's finalizers come off.
    Remove,
}

impl Finalizer {
    /// The finalizer of a module whose manifest says `wanted`: empty for the name that is made
    /// of the module's.
    pub fn new(module: &str, wanted: Option<&str>) -> Self {
        let name = wanted.map(|name| match name {
            "" => format!("{PREFIX}{module}"),
            name => name.to_owned(),
        });
        Self { name, manager: Manager::Finalizer { module: module.to_owned() } }
    }

    /// Its name; `None` if the guest wants none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The manager that writes it.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// What is to be done for a primary. `selected`: the module reconciles it.
    pub fn next_action(&self, primary: &Object, selected: bool) -> FinalizerAction {
        let wanted = self.name().filter(|_| selected);
        let going = primary.is_terminating();
        let wrote = self.written(primary, WrittenBy::This);
        if going
            && let Some(name) = wanted
            && is_on(primary, name)
            && (wrote.contains(name) || !self.written(primary, WrittenBy::Others).contains(name))
        {
            return FinalizerAction::Finalize;
        }
        // What a version before has written under another name has to come off as well.
        if wanted.is_none() || going {
            return match () {
                () if self.is_on_object(primary) => FinalizerAction::Remove,
                () if going || !selected => FinalizerAction::Nothing,
                () => FinalizerAction::Reconcile,
            };
        }
        let as_wanted = wanted.is_some_and(|name| wrote.len() == 1 && wrote.contains(name));
        if as_wanted { FinalizerAction::Reconcile } else { FinalizerAction::Add }
    }

    /// The body that writes the finalizer, and takes off what was written under other names.
    pub fn body(&self, object_ref: &ObjectRef, uid: &str) -> Value {
        let mut body = object_ref.body();
        body["metadata"]["uid"] = uid.into();
        body["metadata"]["finalizers"] = self.name.iter().cloned().collect();
        body
    }

    /// Whether the module has a finalizer on a primary: by its own entry of `managedFields`, since
    /// a name alone may be anybody's.
    pub fn is_on_object(&self, primary: &Object) -> bool {
        self.written(primary, WrittenBy::This).iter().any(|name| is_on(primary, name))
    }

    /// The body of an apply that gives up the finalizers which another module has written as well:
    /// they stay until that module takes them off. `None` if there are none.
    pub fn relinquish_body(&self, object_ref: &ObjectRef, primary: &Object) -> Option<Value> {
        let mine = self.written(primary, WrittenBy::This);
        let others = self.written(primary, WrittenBy::Others);
        if mine.is_disjoint(&others) {
            return None;
        }
        let mut body = object_ref.body();
        body["metadata"]["uid"] = (&*primary.uid).into();
        body["metadata"]["finalizers"] = mine.difference(&others).cloned().collect();
        Some(body)
    }

    /// The merge patch that takes the module's finalizers off a primary of this version; `None` if
    /// none is on it. It is no apply: that would leave a finalizer which somebody else has applied
    /// as well, and the primary would never go.
    ///
    /// `finalized`: the guest was asked what is left to do, so the finalizer of its name comes off
    /// whichever manager wrote it (that of a previous operator, for example), but for another
    /// module's.
    pub fn removal_patch(&self, primary: &Object, finalized: bool) -> Option<Value> {
        let mut off = self.written(primary, WrittenBy::This);
        off.extend(self.name.clone().filter(|_| finalized));
        let others = self.written(primary, WrittenBy::Others);
        off.retain(|name| is_on(primary, name) && !others.contains(name));
        if off.is_empty() {
            return None;
        }
        let rest: Vec<_> =
            primary.finalizers.iter().filter(|name| !off.contains(&***name)).collect();
        Some(json!({
            "metadata": { "resourceVersion": primary.resource_version, "finalizers": rest },
        }))
    }

    /// The finalizers that this module, or other modules, have written, by their entries of
    /// `managedFields`.
    fn written(&self, primary: &Object, who: WrittenBy) -> BTreeSet<String> {
        let is_meant = |entry: &&Entry| {
            matches!(entry.manager, Manager::Finalizer { .. })
                && (entry.manager == self.manager) == (who == WrittenBy::This)
                && entry.operation == Operation::Apply
                && entry.subresource.is_empty()
        };
        let entries = primary.entries.iter().filter(is_meant);
        entries.flat_map(|entry| finalizers_of(&entry.fields)).collect()
    }
}

/// Whose finalizers are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenBy {
    This,
    Others,
}

fn is_on(primary: &Object, name: &str) -> bool {
    primary.finalizers.iter().any(|one| **one == *name)
}

/// The finalizers that an entry of `managedFields` holds.
fn finalizers_of(fields: &str) -> Vec<String> {
    let Ok(entry) = FieldSet::parse(fields) else { return Vec::new() };
    let finalizers =
        entry.field("metadata").and_then(|metadata| metadata.below().field("finalizers"));
    let elements = finalizers.into_iter().flat_map(|finalizers| finalizers.below().iter());
    elements
        .filter_map(|(element, _)| match element {
            Element::Value(text) => serde_json::from_str(text).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use innkeeper_contract::Kind;

    /// A primary with these finalizers, of which the module has written some.
    fn primary(finalizers: &[&str], written: &[&str], going: bool) -> Object {
        let fields: Value = written
            .iter()
            .map(|name| (format!("v:{}", json!(name)), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut object = json!({"metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "finalizers": finalizers,
            "managedFields": [{
                "manager": "innkeeper/m/finalizer", "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:finalizers": fields}},
            }],
        }});
        if written.is_empty() {
            object["metadata"]["managedFields"] = json!([]);
        }
        if going {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let kind = Kind::namespaced("example.com/v1", "Thing", "things");
        Object::decode(&kind, &object.to_string(), None).unwrap()
    }

    fn named(name: Option<&str>) -> Finalizer {
        Finalizer::new("m", name)
    }

    const OURS: &str = "innkeeper.dev/m";

    #[test]
    fn it_is_written_first_and_then_the_work_begins() {
        let finalizer = named(Some(""));
        assert_eq!(finalizer.next_action(&primary(&[], &[], false), true), FinalizerAction::Add);
        assert_eq!(
            finalizer.next_action(&primary(&[OURS], &[OURS], false), true),
            FinalizerAction::Reconcile
        );
        assert_eq!(
            finalizer.next_action(&primary(&[OURS], &[], false), true),
            FinalizerAction::Add,
            "somebody else wrote it, and may take it off"
        );
    }

    #[test]
    fn without_one_a_primary_that_goes_is_left_alone() {
        assert_eq!(
            named(None).next_action(&primary(&[], &[], false), true),
            FinalizerAction::Reconcile
        );
        assert_eq!(
            named(None).next_action(&primary(&["x"], &[], true), true),
            FinalizerAction::Nothing
        );
        assert_eq!(
            named(Some("")).next_action(&primary(&["x"], &[], true), true),
            FinalizerAction::Nothing,
            "never written on a primary that goes"
        );
    }

    #[test]
    fn a_primary_that_goes_is_finalized() {
        assert_eq!(
            named(Some("")).next_action(&primary(&[OURS], &[OURS], true), true),
            FinalizerAction::Finalize
        );
        assert_eq!(
            named(Some("a.b/c")).next_action(&primary(&["a.b/c"], &[], true), true),
            FinalizerAction::Finalize,
            "whoever wrote it: the operator before this one, for example"
        );
    }

    #[test]
    fn what_the_module_has_nothing_to_do_with_any_more_is_let_go() {
        for going in [false, true] {
            let held = primary(&[OURS], &[OURS], going);
            assert_eq!(named(Some("")).next_action(&held, false), FinalizerAction::Remove);
            assert_eq!(named(None).next_action(&held, true), FinalizerAction::Remove);
        }
        assert_eq!(
            named(Some("")).next_action(&primary(&["x"], &[], false), false),
            FinalizerAction::Nothing
        );
    }

    #[test]
    fn another_name_takes_the_place_of_the_one_before() {
        let finalizer = named(Some("a.b/c"));
        assert_eq!(
            finalizer.next_action(&primary(&[OURS], &[OURS], false), true),
            FinalizerAction::Add
        );
        assert_eq!(
            finalizer.next_action(&primary(&[OURS], &[OURS], true), true),
            FinalizerAction::Remove
        );
    }

    #[test]
    fn only_its_own_come_off_and_only_of_the_version_that_was_seen() {
        let held = primary(&["x", OURS, "a.b/c"], &[OURS], true);
        let without = |names: &[&str]| {
            Some(json!({"metadata": {"resourceVersion": "7", "finalizers": names}}))
        };
        let named = named(Some("a.b/c"));
        assert_eq!(named.removal_patch(&held, false), without(&["x", "a.b/c"]));
        assert_eq!(named.removal_patch(&held, true), without(&["x"]), "the guest was asked");
        assert_eq!(named.removal_patch(&primary(&["x"], &[], true), true), None);
    }

    /// A primary whose finalizer `a.b/c` two modules have written.
    fn shared() -> Object {
        let entry = |manager: &str| {
            json!({"manager": manager, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"a.b/c\"": {}}}}})
        };
        let object = json!({"metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "finalizers": ["a.b/c"], "deletionTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [entry("innkeeper/m/finalizer"), entry("innkeeper/other/finalizer")],
        }});
        let kind = Kind::namespaced("example.com/v1", "Thing", "things");
        Object::decode(&kind, &object.to_string(), None).unwrap()
    }

    #[test]
    fn finalizer_of_another_module_is_disclaimed_and_never_taken_off() {
        let shared = shared();
        let object_ref = ObjectRef::new(
            std::sync::Arc::new(Kind::namespaced("example.com/v1", "Thing", "things")),
            shared.key.clone(),
        );
        let named = named(Some("a.b/c"));
        assert_eq!(named.next_action(&shared, true), FinalizerAction::Finalize);
        assert_eq!(named.removal_patch(&shared, true), None);
        let body = named.relinquish_body(&object_ref, &shared).unwrap();
        assert_eq!(body["metadata"]["finalizers"], json!([]));
        assert_eq!(body["metadata"]["uid"], "u");
        assert_eq!(
            named.relinquish_body(&object_ref, &primary(&["a.b/c"], &["a.b/c"], true)),
            None
        );

        let third = Finalizer::new("third", Some("a.b/c"));
        assert_eq!(
            third.next_action(&shared, true),
            FinalizerAction::Nothing,
            "it did not write it"
        );
        assert_eq!(third.next_action(&shared, false), FinalizerAction::Nothing);
    }

    #[test]
    fn finalizer_of_a_primary_that_is_not_selected_stays_unless_this_module_wrote_it() {
        for going in [false, true] {
            let anothers = primary(&["a.b/c"], &[], going);
            assert_eq!(
                named(Some("a.b/c")).next_action(&anothers, false),
                FinalizerAction::Nothing
            );
            assert_eq!(named(Some("a.b/c")).removal_patch(&anothers, false), None);
            assert!(!named(Some("a.b/c")).is_on_object(&anothers));
        }
    }
}
