//! What the host remembers of each primary between reconciles. A restart loses it: the host
//! converges without it, by live reads and further applies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_contract::Unapplied;
use innkeeper_core::ObjectRef;
use innkeeper_core::plan::PlannerState;

use crate::queue::ReconcileRequest;
use crate::reconcile::carried_progress::{CarriedProgress, CarriedRound};

/// What the host remembers of one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimaryState {
    /// The uid of the primary.
    pub uid: Box<str>,
    /// What the planner keeps between rounds.
    pub planner: PlannerState,
    /// The objects that the last apply could not write, for the guest's next run.
    pub unapplied: Vec<Unapplied>,
    /// The objects to read live before the next round.
    pub needs_read: BTreeSet<ObjectRef>,
    /// The reason of the last reported `Synced` condition; empty if it was True, `None` if this
    /// host has reported none.
    pub reported: Option<String>,
    /// How many objects of its update groups are not updated.
    pub outdated: usize,
    /// Whether the last round found every object as desired and had no problem, and the same round
    /// would end so again until something wakes the primary.
    pub was_in_sync: bool,
    /// What the rounds of an interrupted reconcile have done, carried over to its next turn.
    pub carried: CarriedProgress,
    /// What the interrupted round has attempted, carried over to its next turn.
    pub carried_round: CarriedRound,
}

impl PrimaryState {
    /// Records the objects that a round could not apply. Gives whether they, or their reasons,
    /// differ from those of the round before, in any order.
    pub fn record_unapplied(&mut self, unapplied: Vec<Unapplied>) -> bool {
        let before = std::mem::replace(&mut self.unapplied, unapplied);
        before.len() != self.unapplied.len()
            || self.unapplied.iter().any(|one| !before.contains(one))
    }
}

/// The states of all primaries. One worker has a request: it takes the state and puts it back.
/// The map has a box for each, since a third of its places are empty.
#[derive(Debug, Default)]
pub struct PrimaryStates(Mutex<BTreeMap<ReconcileRequest, Box<PrimaryState>>>);

impl PrimaryStates {
    /// Takes the state of a primary; an empty one if there is none.
    pub fn take(&self, request: &ReconcileRequest) -> PrimaryState {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
        state.map(|state| *state).unwrap_or_default()
    }

    /// A copy of the state of a primary; an empty one if there is none, or if a worker has it.
    pub fn peek(&self, request: &ReconcileRequest) -> PrimaryState {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(request)
            .map(|state| PrimaryState::clone(state))
            .unwrap_or_default()
    }

    /// Whether the last round of the primary with this uid found every object as desired. False
    /// while a worker has the primary.
    pub fn was_in_sync(&self, request: &ReconcileRequest, uid: &str) -> bool {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(request).is_some_and(|state| state.was_in_sync && *state.uid == *uid)
    }

    /// Puts a state back.
    pub fn put(&self, request: &ReconcileRequest, primary_state: PrimaryState) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.clone(), Box::new(primary_state));
    }

    /// How many objects of update groups are not updated, by module: of primaries that no worker
    /// has now.
    pub fn outdated(&self) -> BTreeMap<Arc<str>, usize> {
        let mut outdated = BTreeMap::new();
        for (request, state) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            if state.outdated > 0 {
                *outdated.entry(request.module.clone()).or_default() += state.outdated;
            }
        }
        outdated
    }

    /// Forgets all primaries of a module.
    pub fn forget_module(&self, module: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|request, _| &*request.module != module);
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Reference;

    use super::*;

    #[test]
    fn primary_was_in_sync_by_its_uid_and_not_while_a_worker_has_it() {
        let states = PrimaryStates::default();
        let key = innkeeper_core::ObjectKey::new("n", "a");
        let request = ReconcileRequest { module: "m".into(), key };
        assert!(!states.was_in_sync(&request, ""), "nothing is known of it");
        let state = PrimaryState { uid: "u1".into(), was_in_sync: true, ..PrimaryState::default() };
        states.put(&request, state);
        assert!(states.was_in_sync(&request, "u1"));
        assert!(!states.was_in_sync(&request, "u2"), "another primary of the same name");
        let state = states.take(&request);
        assert!(!states.was_in_sync(&request, "u1"), "a worker has it");
        states.put(&request, PrimaryState { was_in_sync: false, ..state });
        assert!(!states.was_in_sync(&request, "u1"));
    }

    #[test]
    fn unapplied_objects_are_a_change_only_when_they_differ() {
        let one = |name: &str, reason: &str| Unapplied {
            reference: Reference {
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                namespace: "n".to_owned(),
                name: name.to_owned(),
            },
            reason: reason.to_owned(),
            message: String::new(),
        };
        let mut primary_state = PrimaryState::default();
        assert!(!primary_state.record_unapplied(Vec::new()));
        assert!(primary_state.record_unapplied(vec![one("a", "Conflict"), one("b", "Conflict")]));
        assert!(!primary_state.record_unapplied(vec![one("b", "Conflict"), one("a", "Conflict")]));
        assert!(primary_state.record_unapplied(vec![one("b", "Conflict"), one("a", "Forbidden")]));
        assert!(primary_state.record_unapplied(vec![one("b", "Conflict")]));
        assert!(primary_state.record_unapplied(Vec::new()));
        assert!(!primary_state.record_unapplied(Vec::new()));
    }
}
