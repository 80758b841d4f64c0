//! What the host decided in a scenario: [`Signature`].

use std::collections::BTreeSet;

use innkeeper_faults::{Fault, RequestRecord};
use serde_json::Value;

use crate::cluster_state::ClusterState;
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// The most writes of a scenario of which each with its successor is a part of the signature.
const PAIRS_MAX: usize = 200;

/// The traces of the host's decisions in a scenario: which requests it sent, how each was answered,
/// what followed which, the reasons of conditions and Events, and what went wrong meanwhile. Names
/// of objects are left out, so that it has few parts and a new one is rare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature(BTreeSet<String>);

impl Signature {
    /// The signature of what happened in a scenario.
    pub(crate) fn of(scenario: &Scenario, outcome: &Outcome) -> Self {
        let mut parts = BTreeSet::new();
        let fault = |one: &RequestRecord| {
            let fault = one.fault.and_then(|index| scenario.faults.faults.get(index));
            fault.map_or("-", |planned| kind_of(&planned.fault))
        };
        for request in outcome.requests() {
            let code = request.code.unwrap_or_default();
            parts.insert(format!("{} {code} {}", action(request), fault(request)));
            if request.info.resource == "events" {
                let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                parts.insert(format!("event {}", event["reason"]));
            }
        }
        let writes: Vec<&RequestRecord> = outcome.writes().take(PAIRS_MAX).collect();
        for pair in writes.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            let code = first.code.unwrap_or_default();
            parts.insert(format!("{} {code} then {}", action(first), action(second)));
        }
        let objects = outcome.states.iter().flat_map(ClusterState::objects);
        for (_, object) in objects {
            let conditions = object["status"]["conditions"].as_array();
            for condition in conditions.into_iter().flatten() {
                let [type_, status, reason] =
                    ["type", "status", "reason"].map(|member| &condition[member]);
                parts.insert(format!("condition {type_} {status} {reason}"));
            }
        }
        for (reason, _) in &outcome.guest_failures {
            parts.insert(format!("failure {reason}"));
        }
        for (incident, requests) in &outcome.incidents {
            parts.insert(format!("incident {incident} {}", *requests > 0));
        }
        parts.insert(format!("crashes {}", outcome.crashes.min(4)));
        parts.insert(format!("partial {}", outcome.partial_answers > 0));
        Self(parts)
    }

    /// Adds the parts of another one. Returns whether one is new.
    pub(crate) fn add(&mut self, other: Self) -> bool {
        let before = self.0.len();
        self.0.extend(other.0);
        self.0.len() > before
    }

    /// The number of its parts.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The verb and the resource of a request.
fn action(request: &RequestRecord) -> String {
    let info = &request.info;
    format!("{} {}/{}/{}", info.verb, info.group, info.resource, info.subresource)
}

fn kind_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refuse(_) => "refuse",
        Fault::LoseAnswer {} => "lose",
        Fault::Hang {} => "hang",
        Fault::DelayAnswer { .. } => "late answer",
        Fault::DelayRequest { .. } => "late request",
        Fault::Duplicate {} => "twice",
        Fault::Crash { .. } => "crash",
        Fault::ConcurrentWriter(_) => "other writer",
        Fault::Watch(_) => "watch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_with_a_new_part_is_new_once() {
        let of = |parts: &[&str]| Signature(parts.iter().map(|&part| part.to_owned()).collect());
        let mut all = Signature::default();
        assert!(all.add(of(&["a", "b"])));
        assert!(!all.add(of(&["b"])));
        assert!(all.add(of(&["b", "c"])));
        assert_eq!(all.len(), 3);
    }
}
