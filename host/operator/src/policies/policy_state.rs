//! The state of a decided policy, as the leader sees it: the replicas that review with it, and its
//! webhook configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_admission::FailurePolicy;
use innkeeper_contract::{Condition, ConditionStatus};
use serde_json::{Map, Value, json};

/// The reason of a policy that reviews.
const POLICY_ACTIVE: &str = "PolicyActive";

/// The reason of a policy with which no replica reviews.
const NO_REPLICA_REVIEWS: &str = "NoReplicaReviews";

/// The state of a decided policy, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyState {
    /// The id of the decided record.
    pub record: String,
    /// How many live replicas review with it.
    pub reviewing: usize,
    /// How many replicas are alive.
    pub replicas: usize,
    /// One of the other replicas and why it does not, in one line.
    pub not_reviewing: Option<String>,
    /// The failure policy of the webhook configuration; `None` if there is none.
    pub failure_policy: Option<FailurePolicy>,
    /// The webhook configuration, by resource and name; `None` if there is none.
    pub webhooks: Option<String>,
    /// Why the API server does not send the requests that the rules match.
    pub problem: Option<PolicyProblem>,
    /// How many reviews with the record have failed, on all live replicas.
    pub failed_reviews: u64,
    /// Why one of them failed.
    pub failure_example: Option<String>,
}

/// What the leader knows of the policy of each module that has one. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct PolicyStates(Arc<Mutex<BTreeMap<String, PolicyState>>>);

impl PolicyStates {
    /// The state of the policy of a module; `None` if the leader knows nothing of it.
    pub fn get(&self, module: &str) -> Option<PolicyState> {
        self.states().get(module).cloned()
    }

    /// Replaces the state of the policy of a module; `None` forgets it.
    pub fn set(&self, module: &str, state: Option<PolicyState>) {
        match state {
            Some(state) => self.states().insert(module.to_owned(), state),
            None => self.states().remove(module),
        };
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, PolicyState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why the API server does not send a policy the requests that its rules match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The reason of the condition.
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

impl PolicyState {
    /// Adds the state to `status.policy`.
    pub(crate) fn complete(&self, status: &mut Map<String, Value>) {
        let Some(policy) = status.get_mut("policy").and_then(Value::as_object_mut) else { return };
        policy.insert("record".to_owned(), json!(self.record));
        let replicas = format!("{}/{}", self.reviewing, self.replicas);
        policy.insert("replicas".to_owned(), json!(replicas));
        if let Some(failure_policy) = self.failure_policy {
            policy.insert("failurePolicy".to_owned(), json!(failure_policy));
        }
        if let Some(webhooks) = &self.webhooks {
            policy.insert("webhooks".to_owned(), json!(webhooks));
        }
    }

    /// The condition of a Module that only has a policy, in place of one that holds as far as the
    /// driver knows.
    pub(crate) fn condition(&self, of_driver: &Condition) -> Condition {
        let Self { reviewing, replicas, .. } = self;
        let (status, reason, message) = if *reviewing > 0 {
            let others = match &self.not_reviewing {
                Some(other) => format!("; {other}"),
                None => ".".to_owned(),
            };
            let message =
                format!("The policy is active on {reviewing} of {replicas} replicas{others}");
            (ConditionStatus::True, POLICY_ACTIVE, message)
        } else {
            let message = if *replicas == 0 {
                "No replica of the host reports that it reviews requests; see its log".to_owned()
            } else {
                let why = self.not_reviewing.as_deref().unwrap_or("see the log of the host");
                format!("No replica reviews with the record {}: {why}", self.record)
            };
            (ConditionStatus::False, NO_REPLICA_REVIEWS, message)
        };
        Condition { type_: of_driver.type_.clone(), status, reason: reason.to_owned(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(reviewing: usize) -> PolicyState {
        PolicyState {
            record: "0011".to_owned(),
            reviewing,
            replicas: 2,
            not_reviewing: (reviewing < 2).then(|| "replica b: it is slow".to_owned()),
            failure_policy: Some(FailurePolicy::Fail),
            webhooks: Some("validatingwebhookconfigurations/x".to_owned()),
            problem: None,
            failed_reviews: 0,
            failure_example: None,
        }
    }

    fn condition(state: &PolicyState) -> String {
        let of_driver = Condition {
            type_: "Serving".to_owned(),
            status: ConditionStatus::True,
            reason: "RevisionActive".to_owned(),
            message: "It is.".to_owned(),
        };
        let Condition { type_, status, reason, message } = state.condition(&of_driver);
        format!("{type_}={} {reason}: {message}", status.as_str())
    }

    #[test]
    fn policy_serves_once_one_replica_reviews_with_the_decided_record() {
        for (reviewing, expected) in [
            (2, "True PolicyActive: The policy is active on 2 of 2 replicas."),
            (
                1,
                "True PolicyActive: The policy is active on 1 of 2 replicas; replica b: it is slow",
            ),
            (
                0,
                "False NoReplicaReviews: No replica reviews with the record 0011: replica b: it is slow",
            ),
        ] {
            assert_eq!(condition(&state(reviewing)), format!("Serving={expected}"));
        }
        let nobody = PolicyState { replicas: 0, not_reviewing: None, ..state(0) };
        assert_eq!(
            condition(&nobody),
            "Serving=False NoReplicaReviews: No replica of the host reports that it reviews requests; see its log"
        );
    }

    #[test]
    fn status_has_what_the_leader_knows_only_next_to_what_the_driver_knows() {
        let mut status = Map::new();
        state(1).complete(&mut status);
        assert!(status.is_empty());
        status.insert("policy".to_owned(), json!({"kind": "Validate", "mode": "Warn"}));
        state(1).complete(&mut status);
        assert_eq!(
            status["policy"],
            json!({"kind": "Validate", "mode": "Warn", "record": "0011", "replicas": "1/2",
                "failurePolicy": "Fail", "webhooks": "validatingwebhookconfigurations/x"})
        );
    }
}
