//! Which creates a conflict holds back.
//!
//! Two primaries that desire the same names in one namespace never split them: the objects of a
//! namespace are created all or not at all. A conflict in one namespace says nothing about others,
//! and holds back cluster-scoped objects, which those of the namespace may need.

use std::collections::BTreeMap;

use innkeeper_contract::Policy;

use super::conflict::Conflict;
use super::skip_reason::SkipReason;
use super::step::{Action, Step};
use crate::ObjectRef;
use crate::desired::DesiredObject;

/// Holds back the creates, adoptions (with the unmerges that precede them) and recreates that a
/// conflict concerns, and adds them to the conflict. `objects` are those of the steps, in the same
/// order.
pub(super) fn hold_back(steps: &mut [Step], objects: &[DesiredObject]) {
    let conflicts = Conflicts::of(steps, objects);
    let mut held_back: BTreeMap<usize, Vec<ObjectRef>> = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(step) = steps.get_mut(index) else { break };
        let creates = matches!(
            step.action,
            Action::Create
                | Action::Adopt { .. }
                | Action::Unmerge { .. }
                | Action::Recreate { .. }
        );
        if !creates || object.has(Policy::Independent) {
            continue;
        }
        if let Some((conflict, by)) = conflicts.holding_back(&Place::of(&object.object_ref)) {
            step.action = Action::Skip(SkipReason::HeldBack(by.clone()));
            held_back.entry(*conflict).or_default().push(object.object_ref.clone());
        }
    }
    for (conflict, objects) in held_back {
        if let Some(Step {
            action: Action::Skip(SkipReason::Conflict { holds_back, .. }), ..
        }) = steps.get_mut(conflict)
        {
            *holds_back = objects;
        }
    }
}

/// The first conflict that holds back others, of each place: index of the step, and object.
struct Conflicts(BTreeMap<Place, (usize, ObjectRef)>);

/// Where an object belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A namespace: the Namespace itself and the objects in it.
    Namespace(String),
    /// No namespace: another cluster-scoped object.
    Cluster,
}

impl Conflicts {
    fn of(steps: &[Step], objects: &[DesiredObject]) -> Self {
        let mut conflicts = BTreeMap::new();
        for (index, (step, object)) in steps.iter().zip(objects).enumerate() {
            let takes_name = match &step.action {
                // The name is that of another object of the same primary.
                Action::Skip(SkipReason::Conflict { conflict, .. }) => {
                    !matches!(conflict, Conflict::SameObject(_))
                }
                _ => false,
            };
            if takes_name && !object.has(Policy::Independent) {
                let object_ref = &object.object_ref;
                let place = Place::of(object_ref);
                conflicts.entry(place).or_insert_with(|| (index, object_ref.clone()));
            }
        }
        Self(conflicts)
    }

    /// The conflict that holds back the objects of a place, if one does. Objects in any namespace
    /// may need a cluster-scoped object, as `RoleBindings` need a `ClusterRole`. The primary that
    /// has a conflict in some namespace must not take that object from one that has none.
    fn holding_back(&self, place: &Place) -> Option<&(usize, ObjectRef)> {
        let of_cluster = self.0.get(&Place::Cluster);
        match place {
            Place::Namespace(_) => self.0.get(place).or(of_cluster),
            Place::Cluster => of_cluster.or_else(|| self.0.values().next()),
        }
    }
}

impl Place {
    fn of(object_ref: &ObjectRef) -> Self {
        let ObjectRef { kind, key } = object_ref;
        let namespace = match (kind.group(), kind.kind.as_str()) {
            ("", "Namespace") => key.name(),
            _ => key.namespace(),
        };
        if namespace.is_empty() { Self::Cluster } else { Self::Namespace(namespace.to_owned()) }
    }
}
