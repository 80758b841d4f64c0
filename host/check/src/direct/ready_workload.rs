//! Workloads as the controllers of Kubernetes report them when all of their Pods are ready.

use innkeeper_contract::Kind;
use innkeeper_core::Object;
use serde_json::{Value, json};

/// An object with the status of a workload that is ready, or of a claim that is bound; `None` for
/// other kinds.
pub(super) fn ready(kind: &Kind, object: &Object) -> Option<Object> {
    let mut value: Value = serde_json::from_str(&object.text.read()).ok()?;
    let status = ready_status(kind, &value, object.generation)?;
    value["status"] = status;
    Some(Object { text: value.to_string().into(), ..object.clone() })
}

fn ready_status(kind: &Kind, object: &Value, generation: i64) -> Option<Value> {
    let count = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let condition =
        |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason});
    Some(match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment") => json!({"observedGeneration": generation, "replicas": count,
            "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count,
            "conditions": [condition("Available", "MinimumReplicasAvailable"),
                condition("Progressing", "NewReplicaSetAvailable")]}),
        ("apps", "StatefulSet") => json!({"observedGeneration": generation, "replicas": count,
            "currentReplicas": count, "updatedReplicas": count, "readyReplicas": count,
            "availableReplicas": count, "currentRevision": "1", "updateRevision": "1"}),
        ("apps", "DaemonSet") => json!({"observedGeneration": generation,
            "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1,
            "numberReady": 1, "numberAvailable": 1, "numberMisscheduled": 0}),
        ("batch", "Job") => json!({"succeeded": 1, "conditions": [condition("Complete", "")]}),
        ("", "PersistentVolumeClaim") => json!({"phase": "Bound"}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::ReadinessState;
    use innkeeper_core::readiness;

    use super::*;

    #[test]
    fn each_kind_is_ready_by_the_rules_of_the_host_and_others_stay() {
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"),
            ("apps/v1", "DaemonSet"),
            ("batch/v1", "Job"),
            ("v1", "PersistentVolumeClaim"),
        ] {
            let kind = Kind::namespaced(api_version, kind, "any");
            for replicas in [json!(0), json!(3), Value::Null] {
                let text = json!({"metadata": {"name": "a", "generation": 2},
                    "spec": {"replicas": replicas}});
                let object = Object::decode(&kind, &text.to_string(), None).unwrap();
                let ready = ready(&kind, &object).unwrap();
                let state = readiness::of(&kind, &ready);
                assert_eq!(state.state, ReadinessState::Ready, "{kind}: {state:?}");
            }
        }
        let map = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let object = Object::decode(&map, r#"{"metadata": {"name": "a"}}"#, None).unwrap();
        assert_eq!(ready(&map, &object), None);
    }
}
