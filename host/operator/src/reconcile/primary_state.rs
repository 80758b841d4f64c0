//! What is known of each primary from its rounds before. Lost at a restart, and only
//! that: nothing here is needed to converge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use innkeeper_contract::Unapplied;
use innkeeper_core::{ObjectRef, plan};

use crate::queue::ReconcileRequest;
use crate::reconcile::unfinished::{Unfinished, UnfinishedRound};

/// What is known of one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimaryState {
    /// The uid of the primary that all this is about.
    pub uid: Box<str>,
    /// For the planner.
    pub plan: plan::PlanState,
    /// What could not be applied in the last round that came to applying: told to the guest.
    pub unapplied: Vec<Unapplied>,
    /// What has to be read live before the next round.
    pub needs_read: BTreeSet<ObjectRef>,
    /// The reason that was last reported for not being as wanted; empty if all is well, `None`
    /// if nothing has been reported yet.
    pub reported: Option<String>,
    /// What the write rate left unfinished.
    pub unfinished: Unfinished,
    /// The round that the write rate left unfinished.
    pub unfinished_round: UnfinishedRound,
}

impl PrimaryState {
    /// Notes what a round could not apply. Whether that is something else than the round before, or
    /// the same for another reason, in whatever order they were met.
    pub fn record_unapplied(&mut self, unapplied: Vec<Unapplied>) -> bool {
        let before = std::mem::replace(&mut self.unapplied, unapplied);
        before.len() != self.unapplied.len()
            || self.unapplied.iter().any(|one| !before.contains(one))
    }
}

/// The memories of all primaries. One worker a key: a memory is taken and put back.
#[derive(Debug, Default)]
pub struct PrimaryStates(Mutex<BTreeMap<ReconcileRequest, PrimaryState>>);

impl PrimaryStates {
    /// Takes a primary's memory; an empty one if there is none.
    pub fn take(&self, request: &ReconcileRequest) -> PrimaryState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(request).unwrap_or_default()
    }

    /// A primary's memory as it is now, to look at; an empty one if there is none, or if a worker
    /// has it.
    pub fn peek(&self, request: &ReconcileRequest) -> PrimaryState {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(request)
            .cloned()
            .unwrap_or_default()
    }

    /// Puts a memory back.
    pub fn put(&self, request: &ReconcileRequest, primary_state: PrimaryState) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.clone(), primary_state);
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
