//! Whether the cluster agrees with what the primaries report, and whether data was lost.

use serde_json::Value;

use crate::cluster_state::ClusterState;
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step, controllers};
use crate::subject::Subject;

/// Kinds of `apps/v1` whose status counts ready Pods, and the field with the number that they are
/// to have.
const WORKLOADS: [(&str, &str); 3] = [
    ("Deployment", "/spec/replicas"),
    ("StatefulSet", "/spec/replicas"),
    ("DaemonSet", "/status/desiredNumberScheduled"),
];

/// The primaries that report to be ready although the cluster shows that they are not: the host
/// reports that not every object is applied, or a workload of the primary has too few ready Pods.
pub(crate) fn contradictions(state: &ClusterState, subject: &Subject) -> Vec<String> {
    let objects = || state.stored_objects();
    let ready = objects().filter(|(_, object)| {
        subject.is_primary(object) && condition(object, "Ready").is_some_and(is_current(object))
    });
    let mut found = Vec::new();
    for (name, primary) in ready {
        if let Some(synced) = condition(primary, "Synced").filter(|one| one["status"] == "False") {
            let reason = synced["reason"].as_str().unwrap_or_default();
            // The user who pauses a primary knows it.
            if reason != "Paused" {
                found.push(format!("{name}: Ready is true, and Synced is false: {reason}"));
            }
        }
        let unready = objects().filter(|(_, object)| {
            controllers(object).any(|owner| owner["uid"] == primary["metadata"]["uid"])
                && is_unready(object)
        });
        found.extend(unready.map(|(workload, _)| {
            format!("{name}: Ready is true, and {workload} has too few ready Pods")
        }));
    }
    found
}

/// The condition of a type, if there is one.
pub(crate) fn condition<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|one| one["type"] == type_)
}

/// Whether a condition is true, and about the present spec.
fn is_current(object: &Value) -> impl Fn(&Value) -> bool {
    let generation = object["metadata"]["generation"].clone();
    move |condition| {
        let observed = &condition["observedGeneration"];
        condition["status"] == "True" && (observed.is_null() || *observed == generation)
    }
}

/// Whether a workload has fewer ready Pods than it is to have.
pub(crate) fn has_unready_workload(state: &ClusterState) -> bool {
    state.stored_objects().any(|(_, object)| is_unready(object))
}

/// Whether a workload has fewer ready Pods than it is to have.
fn is_unready(object: &Value) -> bool {
    let is_workload = |(kind, _): &&(&str, &str)| {
        object["apiVersion"] == "apps/v1" && object["kind"].as_str() == Some(kind)
    };
    let Some((kind, wanted)) = WORKLOADS.iter().find(is_workload) else { return false };
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let ready = if *kind == "DaemonSet" { "/status/numberReady" } else { "/status/readyReplicas" };
    number(ready) < number(wanted)
}

/// The objects with data that were deleted and made again, although one change of a primary led
/// from a spec with the object to another one with it, and nobody deleted anything.
pub(crate) fn lost_data(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut lost = Vec::new();
    let mut states = outcome.states.iter();
    let mut before: Option<&ClusterState> = None;
    let (mut changes, mut deletions) = (0, 0);
    // There is a state for each time that everything was quiet, and one for the end.
    for step in scenario.steps.iter().chain([&Step::Settle]) {
        match step {
            Step::Apply(_) | Step::Replace(_) | Step::Upgrade => changes += 1,
            Step::Delete(_) => deletions += 1,
            Step::Settle => {
                let Some(state) = states.next() else { break };
                if let Some(before) = before.filter(|_| changes <= 1 && deletions == 0) {
                    lost.extend(made_again(before, state));
                }
                before = Some(state);
                (changes, deletions) = (0, 0);
            }
            _ => {}
        }
    }
    lost
}

/// The objects with data that are in both states and not the same.
fn made_again(before: &ClusterState, after: &ClusterState) -> Vec<String> {
    let is_other = |(name, object): &(&str, &Value)| {
        let now = after.stored(name);
        holds_data(object)
            && now.is_some_and(|now| now["metadata"]["uid"] != object["metadata"]["uid"])
    };
    before.stored_objects().filter(is_other).map(|(name, _)| name.to_owned()).collect()
}

/// Whether the deletion of an object loses data.
fn holds_data(object: &Value) -> bool {
    match object["kind"].as_str().unwrap_or_default() {
        "PersistentVolumeClaim" | "PersistentVolume" => object["apiVersion"] == "v1",
        "StatefulSet" => {
            let claims = object["spec"]["volumeClaimTemplates"].as_array();
            object["apiVersion"] == "apps/v1" && claims.is_some_and(|claims| !claims.is_empty())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subject::tests::shops;

    /// A Shop with conditions, and a Deployment of it.
    fn state(conditions: &Value, ready_replicas: u32) -> ClusterState {
        let owner = json!({"kind": "Shop", "name": "a", "uid": "1", "controller": true});
        ClusterState::of([
            json!({"apiVersion": "example.com/v1", "kind": "Shop",
                "metadata": {"name": "a", "uid": "1", "generation": 2},
                "status": {"conditions": conditions}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "uid": "2", "ownerReferences": [owner]},
                "spec": {"replicas": 2}, "status": {"readyReplicas": ready_replicas}}),
        ])
    }

    #[test]
    fn ready_primary_contradicts_a_false_synced_and_an_unready_deployment() {
        let ready = json!({"type": "Ready", "status": "True", "observedGeneration": 2});
        let synced = |reason: &str| json!({"type": "Synced", "status": "False", "reason": reason});
        let found = |conditions: Value, ready: u32| {
            contradictions(&state(&conditions, ready), &shops()).len()
        };
        assert_eq!(found(json!([ready]), 2), 0);
        assert_eq!(found(json!([ready]), 1), 1);
        assert_eq!(found(json!([ready, synced("Conflict")]), 2), 1);
        assert_eq!(found(json!([ready, synced("Paused")]), 2), 0);
        // About an earlier spec, or not ready.
        let old = json!({"type": "Ready", "status": "True", "observedGeneration": 1});
        assert_eq!(found(json!([old, synced("Conflict")]), 1), 0);
        let unready = json!({"type": "Ready", "status": "False", "observedGeneration": 2});
        assert_eq!(found(json!([unready]), 0), 0);
    }

    #[test]
    fn claim_is_lost_if_one_change_makes_it_again() {
        let claim = |uid: &str| {
            ClusterState::of([json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "a", "uid": uid}})])
        };
        let apply = || Step::Apply(json!({}));
        let lost = |steps: Vec<Step>, after: &str| {
            let states = vec![claim("1"), claim(after)];
            let outcome = Outcome { states, ..Outcome::default() };
            lost_data(&Scenario::new(1, steps), &outcome)
        };
        let name = "v1 PersistentVolumeClaim a";
        assert_eq!(lost(vec![apply(), Step::Settle, apply()], "2"), [name]);
        assert_eq!(lost(vec![apply(), Step::Settle, apply()], "1"), [""; 0]);
        // A user deletes it, or a spec in between may do without it.
        let delete = Step::Delete(json!({}));
        assert_eq!(lost(vec![apply(), Step::Settle, delete], "2"), [""; 0]);
        assert_eq!(lost(vec![apply(), Step::Settle, apply(), apply()], "2"), [""; 0]);
    }

    #[test]
    fn statefulset_holds_data_if_it_has_claims() {
        let set = |claims: Value| {
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
                "spec": {"volumeClaimTemplates": claims}})
        };
        assert!(holds_data(&set(json!([{"metadata": {"name": "data"}}]))));
        assert!(!holds_data(&set(json!([]))));
        assert!(!holds_data(&json!({"apiVersion": "v1", "kind": "ConfigMap"})));
    }
}
