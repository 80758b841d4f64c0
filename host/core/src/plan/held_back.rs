//! Which creates a conflict holds back.
//!
//! Two primaries that desire the same names in one namespace never split them: the objects of a
//! namespace are created all or not at all. A conflict in one namespace says nothing about others.

use std::collections::BTreeMap;

use innkeeper_contract::Policy;

use super::skip_reason::SkipReason;
use super::step::{Action, Step};
use crate::ObjectRef;
use crate::desired::DesiredObject;

/// Holds back the creates, adoptions and recreates that a conflict concerns, and adds them to the
/// conflict. `objects` are those of the steps, in the same order.
pub(super) fn hold_back(steps: &mut [Step], objects: &[DesiredObject]) {
    let conflicts = Conflicts::of(steps, objects);
    let mut held_back: BTreeMap<usize, Vec<ObjectRef>> = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        let Some(step) = steps.get_mut(index) else { break };
        let creates =
            matches!(step.action, Action::Create | Action::Adopt { .. } | Action::Recreate { .. });
        if !creates || object.has(Policy::Independent) {
            continue;
        }
        if let Some((conflict, by)) = conflicts.of_scope(scope(&object.object_ref)) {
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

/// The conflicts that hold back others: index of the step and object, the first of each scope.
struct Conflicts(BTreeMap<Scope, (usize, ObjectRef)>);

/// What belongs together: a namespace with the objects in it, or all objects of a primary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Namespace(String),
    Everything,
}

impl Conflicts {
    fn of(steps: &[Step], objects: &[DesiredObject]) -> Self {
        let mut conflicts = BTreeMap::new();
        for (index, (step, object)) in steps.iter().zip(objects).enumerate() {
            let is_conflict = matches!(step.action, Action::Skip(SkipReason::Conflict { .. }));
            if is_conflict && !object.has(Policy::Independent) {
                let object_ref = &object.object_ref;
                conflicts.entry(scope(object_ref)).or_insert_with(|| (index, object_ref.clone()));
            }
        }
        Self(conflicts)
    }

    /// The conflict that holds back the objects of a scope, if one does.
    fn of_scope(&self, scope: Scope) -> Option<&(usize, ObjectRef)> {
        self.0.get(&scope).or_else(|| self.0.get(&Scope::Everything))
    }
}

/// What an object belongs to: its namespace, a Namespace the one that it is. Objects in any
/// namespace may need another cluster-scoped object, as `RoleBindings` need a `ClusterRole`.
fn scope(object_ref: &ObjectRef) -> Scope {
    let ObjectRef { kind, key } = object_ref;
    let namespace = match (kind.group(), kind.kind.as_str()) {
        ("", "Namespace") => key.name(),
        _ => key.namespace(),
    };
    if namespace.is_empty() { Scope::Everything } else { Scope::Namespace(namespace.to_owned()) }
}
