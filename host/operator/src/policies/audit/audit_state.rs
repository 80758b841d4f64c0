//! The state of the audit of a policy, for the status of its Module.

use innkeeper_core::audit::AuditCounts;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The state of the audit of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditState {
    /// The number of objects for each result.
    pub counts: AuditCounts,
    /// When all objects had been reviewed with the active revision and its settings; `None` if some
    /// wait for their first review.
    pub completed: Option<Timestamp>,
    /// The objects that the audit leaves out, or the reason why it cannot write its reports, in one
    /// line.
    pub problem: Option<String>,
}

impl AuditState {
    /// Adds the audit to `status.policy`.
    pub(crate) fn complete(&self, status: &mut Map<String, Value>) {
        let Some(policy) = status.get_mut("policy").and_then(Value::as_object_mut) else { return };
        let AuditCounts { pass, fail, warn, error, .. } = self.counts;
        let mut audit = json!({"passed": pass, "denied": fail, "warned": warn, "failed": error});
        if let Some(completed) = self.completed {
            audit["completed"] = json!(whole_seconds(completed).to_string());
        }
        if let Some(problem) = &self.problem {
            audit["problem"] = json!(problem);
        }
        policy.insert("audit".to_owned(), audit);
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_has_the_audit_next_to_the_policy_and_nowhere_else() {
        let counts = AuditCounts { pass: 4, fail: 1, warn: 2, error: 3, skip: 0 };
        let completed = Some("2026-01-01T00:00:00.5Z".parse().unwrap());
        let state = AuditState { counts, completed, problem: Some("no right".to_owned()) };
        let mut status = Map::new();
        state.complete(&mut status);
        assert!(status.is_empty());
        status.insert("policy".to_owned(), json!({"mode": "Warn"}));
        state.complete(&mut status);
        assert_eq!(
            status["policy"]["audit"],
            json!({"passed": 4, "denied": 1, "warned": 2, "failed": 3,
                "completed": "2026-01-01T00:00:00Z", "problem": "no right"})
        );
        AuditState::default().complete(&mut status);
        assert_eq!(status["policy"]["audit"]["completed"], Value::Null);
    }
}
