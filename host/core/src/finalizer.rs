//! The finalizer of a module on its primaries.
//!
//! The host adds the finalizer before it makes the first object for a primary, and never to a
//! primary that is being deleted. With the finalizer, the guest runs before the primary is deleted.
//! The host removes it when the guest has nothing left to do, and when the module no longer
//! reconciles the primary: otherwise nobody could delete the primary.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fieldset::{Element, FieldSet};
use crate::object::Entry;
use crate::{Manager, Object, ObjectRef};

/// The prefix of the default name: the name of the module follows.
const PREFIX: &str = "innkeeper.dev/";

/// The finalizer of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizer {
    /// The name; `None` if the module has no finalizer.
    name: Option<String>,
    manager: Manager,
}

/// What the host does next for a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerAction {
    /// Nothing: the module does not reconcile the primary, or the primary is being deleted without
    /// its finalizer.
    Nothing,
    /// Reconcile it.
    Reconcile,
    /// Add the finalizer, then reconcile it.
    Add,
    /// Run the guest to finalize the primary, which is being deleted.
    Finalize,
    /// Remove the module's finalizers.
    Remove,
}

impl Finalizer {
    /// Makes the finalizer of a module from the `finalizer` of its manifest; an empty text stands
    /// for the default name.
    pub fn new(module: &str, declared: Option<&str>) -> Self {
        let name = declared.map(|name| match name {
            "" => format!("{PREFIX}{module}"),
            name => name.to_owned(),
        });
        Self { name, manager: Manager::Finalizer { module: module.to_owned() } }
    }

    /// The name; `None` if the module has no finalizer.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The manager that writes the finalizer.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Decides what the host does next for a primary. `selected`: the module reconciles the
    /// primary.
    pub fn next_action(&self, primary: &Object, selected: bool) -> FinalizerAction {
        let desired = self.name().filter(|_| selected);
        let terminating = primary.is_terminating();
        let written = self.written(primary, WrittenBy::This);
        if terminating
            && let Some(name) = desired
            && has_finalizer(primary, name)
            && (written.contains(name) || !self.written(primary, WrittenBy::Others).contains(name))
        {
            return FinalizerAction::Finalize;
        }
        // An earlier revision may have written a finalizer of another name: remove it as well.
        if desired.is_none() || terminating {
            return if self.is_on_object(primary) {
                FinalizerAction::Remove
            } else if terminating || !selected {
                FinalizerAction::Nothing
            } else {
                FinalizerAction::Reconcile
            };
        }
        let is_written = desired.is_some_and(|name| written.len() == 1 && written.contains(name));
        if is_written { FinalizerAction::Reconcile } else { FinalizerAction::Add }
    }

    /// Returns the body of an apply that adds the finalizer, and removes finalizers that the module
    /// wrote under other names.
    pub fn body(&self, object_ref: &ObjectRef, uid: &str) -> Value {
        let mut body = object_ref.body();
        body["metadata"]["uid"] = uid.into();
        body["metadata"]["finalizers"] = self.name.iter().cloned().collect();
        body
    }

    /// Whether a primary has a finalizer that the module wrote. Its entry of `managedFields` shows
    /// that; the name alone does not, since any client may write it.
    pub fn is_on_object(&self, primary: &Object) -> bool {
        self.written(primary, WrittenBy::This).iter().any(|name| has_finalizer(primary, name))
    }

    /// Returns the body of an apply that gives up the finalizers which another module has written
    /// too: they stay until that module removes them. `None` if there are none.
    pub fn relinquish_body(&self, object_ref: &ObjectRef, primary: &Object) -> Option<Value> {
        let own = self.written(primary, WrittenBy::This);
        let others = self.written(primary, WrittenBy::Others);
        if own.is_disjoint(&others) {
            return None;
        }
        let mut body = object_ref.body();
        body["metadata"]["uid"] = (&*primary.uid).into();
        body["metadata"]["finalizers"] = own.difference(&others).cloned().collect();
        Some(body)
    }

    /// Returns the merge patch that removes the module's finalizers from this version of a primary;
    /// `None` if it has none. An apply would not do: it leaves a finalizer that another client has
    /// applied too, and the primary would stay forever.
    ///
    /// `finalized`: the guest has finalized the primary, so the patch removes the finalizer of its
    /// name even if another manager wrote it (a previous operator, for example), unless another
    /// module did.
    pub fn removal_patch(&self, primary: &Object, finalized: bool) -> Option<Value> {
        let mut removed = self.written(primary, WrittenBy::This);
        removed.extend(self.name.clone().filter(|_| finalized));
        let others = self.written(primary, WrittenBy::Others);
        removed.retain(|name| has_finalizer(primary, name) && !others.contains(name));
        if removed.is_empty() {
            return None;
        }
        let rest: Vec<_> =
            primary.finalizers.iter().filter(|name| !removed.contains(&***name)).collect();
        Some(json!({
            "metadata": { "resourceVersion": primary.resource_version, "finalizers": rest },
        }))
    }

    /// The finalizers that this module or other modules have written, from their entries of
    /// `managedFields`.
    fn written(&self, primary: &Object, by: WrittenBy) -> BTreeSet<String> {
        let is_by = |entry: &&Entry| {
            matches!(entry.manager, Manager::Finalizer { .. })
                && (entry.manager == self.manager) == (by == WrittenBy::This)
                && entry.is_apply()
        };
        let entries = primary.entries.iter().filter(is_by);
        entries.flat_map(|entry| finalizers_of(&entry.fields.read())).collect()
    }
}

/// Which modules have written a finalizer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenBy {
    This,
    Others,
}

fn has_finalizer(primary: &Object, name: &str) -> bool {
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

    /// A primary with these finalizers; the module has written some of them.
    fn primary(finalizers: &[&str], written: &[&str], terminating: bool) -> Object {
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
        if terminating {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let kind = Kind::namespaced("example.com/v1", "Thing", "things");
        Object::decode(&kind, &object.to_string(), None).unwrap()
    }

    fn named(name: Option<&str>) -> Finalizer {
        Finalizer::new("m", name)
    }

    const OWN: &str = "innkeeper.dev/m";

    #[test]
    fn primary_is_reconciled_when_the_module_has_added_its_finalizer() {
        let finalizer = named(Some(""));
        assert_eq!(finalizer.next_action(&primary(&[], &[], false), true), FinalizerAction::Add);
        assert_eq!(
            finalizer.next_action(&primary(&[OWN], &[OWN], false), true),
            FinalizerAction::Reconcile
        );
        assert_eq!(
            finalizer.next_action(&primary(&[OWN], &[], false), true),
            FinalizerAction::Add,
            "another client wrote it, and may remove it"
        );
    }

    #[test]
    fn terminating_primary_is_ignored_when_it_has_no_finalizer() {
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
            "never added to a primary that is being deleted"
        );
    }

    #[test]
    fn terminating_primary_with_the_finalizer_is_finalized() {
        assert_eq!(
            named(Some("")).next_action(&primary(&[OWN], &[OWN], true), true),
            FinalizerAction::Finalize
        );
        assert_eq!(
            named(Some("a.b/c")).next_action(&primary(&["a.b/c"], &[], true), true),
            FinalizerAction::Finalize,
            "by any manager: that of a previous operator, for example"
        );
    }

    #[test]
    fn finalizer_is_removed_when_the_module_no_longer_reconciles_the_primary() {
        for terminating in [false, true] {
            let held = primary(&[OWN], &[OWN], terminating);
            assert_eq!(named(Some("")).next_action(&held, false), FinalizerAction::Remove);
            assert_eq!(named(None).next_action(&held, true), FinalizerAction::Remove);
        }
        assert_eq!(
            named(Some("")).next_action(&primary(&["x"], &[], false), false),
            FinalizerAction::Nothing
        );
    }

    #[test]
    fn finalizer_of_another_name_replaces_the_earlier_one() {
        let finalizer = named(Some("a.b/c"));
        assert_eq!(
            finalizer.next_action(&primary(&[OWN], &[OWN], false), true),
            FinalizerAction::Add
        );
        assert_eq!(
            finalizer.next_action(&primary(&[OWN], &[OWN], true), true),
            FinalizerAction::Remove
        );
    }

    #[test]
    fn removal_patch_keeps_other_finalizers_and_guards_the_version() {
        let held = primary(&["x", OWN, "a.b/c"], &[OWN], true);
        let without = |names: &[&str]| {
            Some(json!({"metadata": {"resourceVersion": "7", "finalizers": names}}))
        };
        let named = named(Some("a.b/c"));
        assert_eq!(named.removal_patch(&held, false), without(&["x", "a.b/c"]));
        assert_eq!(named.removal_patch(&held, true), without(&["x"]), "the guest has finalized it");
        assert_eq!(named.removal_patch(&primary(&["x"], &[], true), true), None);
    }

    /// A primary with a finalizer `a.b/c` that two modules have written.
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
    fn finalizer_of_another_module_is_relinquished_and_never_removed() {
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
            "the third module did not write it"
        );
        assert_eq!(third.next_action(&shared, false), FinalizerAction::Nothing);
    }

    #[test]
    fn finalizer_of_a_primary_that_is_not_selected_stays_unless_this_module_wrote_it() {
        for terminating in [false, true] {
            let other = primary(&["a.b/c"], &[], terminating);
            assert_eq!(named(Some("a.b/c")).next_action(&other, false), FinalizerAction::Nothing);
            assert_eq!(named(Some("a.b/c")).removal_patch(&other, false), None);
            assert!(!named(Some("a.b/c")).is_on_object(&other));
        }
    }
}
