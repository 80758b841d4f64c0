use serde_json::{Value, json};

use super::*;

/// The readiness of an object of a kind with these parts; its generation is 2 unless given.
fn readiness_of(api_version: &str, kind: &str, parts: &Value) -> String {
    let mut object = json!({"metadata": {"name": "x", "generation": 2}});
    for (name, value) in parts.as_object().unwrap() {
        object[name] = value.clone();
    }
    let kind = Kind::namespaced(api_version, kind, "things");
    let object = Object::decode(&kind, &object.to_string(), None).unwrap();
    let readiness = of(&kind, &object);
    check_within_fields(&kind, &object, &readiness);
    match readiness.message.as_str() {
        "" => format!("{:?}", readiness.state),
        message => format!("{:?}: {message}", readiness.state),
    }
}

/// An object with the fields of its readiness only is as ready as the whole one.
fn check_within_fields(kind: &Kind, object: &Object, readiness: &Readiness) {
    let text = fields(kind).prune(&object.text.read()).unwrap();
    let pruned = Object { text: text.into(), ..object.clone() };
    let within = of(kind, &pruned);
    // A message about a wrong type says where it is in the text.
    let without_place = |readiness: &Readiness| {
        let message = readiness.message.split(" at line ").next().unwrap_or_default().to_owned();
        (readiness.state, message)
    };
    assert_eq!(without_place(&within), without_place(readiness), "{}", pruned.text.read());
}

fn check(api_version: &str, kind: &str, cases: &[(Value, &str)]) {
    for (parts, expected) in cases {
        assert_eq!(readiness_of(api_version, kind, parts), *expected, "{kind} {parts}");
    }
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": format!("{type_} says so")})
}

#[test]
fn any_kind_is_ready_by_generation_deletion_and_conditions() {
    check(
        "example.com/v1",
        "Thing",
        &[
            (json!({}), "Ready"),
            (json!({"status": null}), "Ready"),
            (json!({"status": {"observedGeneration": 2, "conditions": null}}), "Ready"),
            (
                json!({"status": {"observedGeneration": 1}}),
                "InProgress: generation 2 is not observed yet, only 1",
            ),
            (
                json!({"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"observedGeneration": 1}}),
                "Terminating: being deleted",
            ),
            (
                json!({"status": {"conditions": [condition("Ready", "True", ""), condition("Reconciling", "True", "")]}}),
                "InProgress: Reconciling says so",
            ),
            (
                json!({"status": {"conditions": [condition("Stalled", "True", "")]}}),
                "Failed: Stalled says so",
            ),
            (
                json!({"status": {"conditions": [condition("Stalled", "False", ""), condition("Ready", "True", "")]}}),
                "Ready",
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Waits"}]}}),
                "InProgress: Waits",
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
                "InProgress: Ready",
            ),
            // A kind without generations.
            (json!({"metadata": {"name": "x"}, "status": {"observedGeneration": 1}}), "Ready"),
        ],
    );
}

#[test]
fn object_with_a_field_of_another_type_is_unknown_with_the_reason() {
    let readiness = readiness_of("apps/v1", "Deployment", &json!({"spec": {"replicas": "three"}}));
    assert!(
        readiness.starts_with("Unknown: the object cannot be read: invalid type: string"),
        "{readiness}"
    );
}

#[test]
fn deployment_is_ready_by_replicas_then_conditions() {
    let at = |replicas: i64, updated: i64, available: i64, ready: i64, conditions: Value| {
        json!({
            "spec": {"replicas": 2, "progressDeadlineSeconds": 600},
            "status": {
                "observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated,
                "availableReplicas": available, "readyReplicas": ready, "conditions": conditions,
            },
        })
    };
    let rolled_out = || condition("Progressing", "True", "NewReplicaSetAvailable");
    let available = || condition("Available", "True", "MinimumReplicasAvailable");
    let good = || json!([rolled_out(), available()]);
    check(
        "apps/v1",
        "Deployment",
        &[
            (json!({"spec": {}}), "InProgress: 0 of 1 replicas are ready"),
            (at(1, 1, 1, 1, good()), "InProgress: 1 of 2 replicas are ready"),
            (at(2, 1, 2, 2, good()), "InProgress: 1 of 2 replicas are updated"),
            (at(2, 1, 1, 1, good()), "InProgress: 1 of 2 replicas are updated"),
            (at(3, 2, 2, 2, good()), "InProgress: 1 surplus replica is still to end"),
            (at(2, 2, 1, 2, good()), "InProgress: 1 of 2 replicas are available"),
            (at(2, 2, 2, 1, good()), "InProgress: 1 of 2 replicas are ready"),
            (
                at(2, 2, 2, 2, json!([available()])),
                "InProgress: the new ReplicaSet is not available",
            ),
            (
                at(2, 2, 2, 2, json!([rolled_out()])),
                "InProgress: the condition Available is not True",
            ),
            (at(2, 2, 2, 2, good()), "Ready"),
            (
                at(
                    2,
                    2,
                    2,
                    2,
                    json!([condition("Progressing", "False", "ProgressDeadlineExceeded")]),
                ),
                "Failed: Progressing says so",
            ),
            (json!({"spec": {"replicas": 0}, "status": {"conditions": [available()]}}), "Ready"),
            (
                json!({"spec": {"replicas": 0, "progressDeadlineSeconds": 2_147_483_647}, "status": {"conditions": [available()]}}),
                "Ready",
            ),
        ],
    );
}

#[test]
fn message_of_a_deployment_that_lacks_replicas_stays_until_one_is_ready() {
    let seen = |generation: i64, replicas: i64, updated: i64, ready: i64| {
        json!({
            "spec": {"replicas": 3},
            "status": {"observedGeneration": generation, "replicas": replicas,
                "updatedReplicas": updated, "availableReplicas": ready, "readyReplicas": ready},
        })
    };
    // Created, observed, with Pods; then one more replica, which the controller observes late.
    let lacks = "InProgress: 0 of 3 replicas are ready";
    for parts in [
        json!({"spec": {"replicas": 3}}),
        json!({"spec": {"replicas": 3}, "status": {"observedGeneration": 2}}),
        seen(2, 1, 1, 0),
        seen(2, 3, 3, 0),
    ] {
        check("apps/v1", "Deployment", &[(parts, lacks)]);
    }
    check(
        "apps/v1",
        "Deployment",
        &[
            (seen(1, 2, 2, 2), "InProgress: 2 of 3 replicas are ready"),
            (seen(2, 3, 3, 2), "InProgress: 2 of 3 replicas are ready"),
            // Another template: the counts before are those of the old one.
            (seen(1, 3, 3, 3), "InProgress: generation 2 is not observed yet, only 1"),
            (seen(1, 3, 1, 2), "InProgress: generation 2 is not observed yet, only 1"),
        ],
    );
}

#[test]
fn stateful_set_is_ready_by_replicas_and_revision() {
    let at = |spec: Value, current: i64, updated: i64, revision: &str| {
        json!({
            "spec": spec,
            "status": {
                "replicas": 2, "readyReplicas": 2, "currentReplicas": current,
                "updatedReplicas": updated, "currentRevision": revision, "updateRevision": "b",
            },
        })
    };
    let partition = |partition: i64| json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": partition}}});
    check(
        "apps/v1",
        "StatefulSet",
        &[
            (json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}), "Ready"),
            (json!({"spec": {"replicas": 2}}), "InProgress: 0 of 2 replicas are ready"),
            (
                json!({"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 1}}),
                "InProgress: 1 of 2 replicas are ready",
            ),
            (
                json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}),
                "InProgress: 0 of 2 replicas exist",
            ),
            (
                at(json!({"replicas": 1}), 2, 2, "b"),
                "InProgress: 1 surplus replica is still to end",
            ),
            (
                at(json!({"replicas": 2}), 1, 1, "a"),
                "InProgress: 1 of 2 replicas are of the current revision",
            ),
            (
                at(json!({"replicas": 2}), 2, 2, "a"),
                "InProgress: the current revision is not the updated one yet",
            ),
            (at(json!({"replicas": 2}), 2, 2, "b"), "Ready"),
            (
                at(partition(0), 0, 1, "a"),
                "InProgress: 1 of 2 replicas above the partition are updated",
            ),
            (at(partition(1), 0, 1, "a"), "Ready"),
        ],
    );
}

#[test]
fn daemon_set_is_ready_only_when_its_controller_has_observed_it() {
    let at = |current: i64, updated: i64, available: i64, ready: i64| {
        json!({"status": {
            "observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": current,
            "updatedNumberScheduled": updated, "numberAvailable": available, "numberReady": ready,
        }})
    };
    check(
        "apps/v1",
        "DaemonSet",
        &[
            (json!({}), "InProgress: its controller has not seen it yet"),
            (
                json!({"status": {"desiredNumberScheduled": 0}}),
                "InProgress: its controller has not seen it yet",
            ),
            (at(1, 2, 2, 2), "InProgress: 1 of 2 replicas are scheduled"),
            (at(2, 1, 2, 2), "InProgress: 1 of 2 replicas are updated"),
            (at(2, 2, 1, 2), "InProgress: 1 of 2 replicas are available"),
            (at(2, 2, 2, 1), "InProgress: 1 of 2 replicas are ready"),
            (at(2, 2, 2, 2), "Ready"),
        ],
    );
}

#[test]
fn replica_set_is_ready_by_replicas() {
    let at = |labelled: i64, available: i64, replicas: i64| {
        json!({"spec": {"replicas": 2}, "status": {
            "fullyLabeledReplicas": labelled, "availableReplicas": available, "readyReplicas": 2, "replicas": replicas,
        }})
    };
    check(
        "apps/v1",
        "ReplicaSet",
        &[
            (
                json!({"status": {"conditions": [condition("ReplicaFailure", "True", "")]}}),
                "InProgress: ReplicaFailure says so",
            ),
            (at(1, 2, 2), "InProgress: 1 of 2 replicas are labelled"),
            (at(2, 1, 2), "InProgress: 1 of 2 replicas are available"),
            (at(2, 2, 3), "InProgress: 1 surplus replica is still to end"),
            (at(2, 2, 2), "Ready"),
        ],
    );
}

#[test]
fn pod_is_ready_by_phase_and_containers() {
    let running = |containers: Value| json!({"status": {"phase": "Running", "containerStatuses": containers}});
    check(
        "v1",
        "Pod",
        &[
            (json!({}), "InProgress: it has no phase yet"),
            (json!({"status": {"phase": "Succeeded"}}), "Ready"),
            (json!({"status": {"phase": "Failed"}}), "Ready"),
            (json!({"status": {"phase": "Pending"}}), "InProgress: it is pending"),
            (
                json!({"status": {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}}),
                "InProgress: it cannot be scheduled: PodScheduled says so",
            ),
            (
                json!({"status": {"phase": "Running", "conditions": [condition("Ready", "True", "")]}}),
                "Ready",
            ),
            (running(json!(null)), "InProgress: it runs but is not ready"),
            (
                running(json!([
                    {"name": "a", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}},
                    {"name": "b", "state": {"waiting": {"reason": "ContainerCreating"}}},
                ])),
                "InProgress: it runs but is not ready",
            ),
            (
                running(json!([
                    {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                    {"name": "b"},
                ])),
                "Failed: containers crash again and again: a",
            ),
            (json!({"status": {"phase": "Odd"}}), "Unknown: its phase is Odd"),
        ],
    );
}

#[test]
fn job_is_ready_by_conditions_then_start() {
    let with = |type_: &str| json!({"spec": {"completions": 3}, "status": {"failed": 2, "conditions": [condition(type_, "True", "")]}});
    check(
        "batch/v1",
        "Job",
        &[
            (json!({}), "InProgress: it has not started"),
            (json!({"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1}}), "Ready"),
            (with("Complete"), "Ready"),
            (with("Suspended"), "Ready"),
            (with("Failed"), "Failed: 2 of 3 failed: Failed says so"),
        ],
    );
}

#[test]
fn kinds_with_one_rule_are_ready_by_it() {
    check(
        "v1",
        "PersistentVolumeClaim",
        &[
            (json!({}), "InProgress: it is not bound: it has no phase yet"),
            (
                json!({"status": {"phase": "Pending"}}),
                "InProgress: it is not bound: its phase is Pending",
            ),
            (json!({"status": {"phase": "Bound"}}), "Ready"),
        ],
    );
    check(
        "v1",
        "Service",
        &[
            (json!({"spec": {"type": "ClusterIP"}}), "Ready"),
            (
                json!({"spec": {"type": "LoadBalancer"}}),
                "InProgress: it is a LoadBalancer without a cluster IP",
            ),
            (json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}}), "Ready"),
        ],
    );
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &[
            (json!({}), "InProgress: it is being installed"),
            (
                json!({"status": {"conditions": [condition("Established", "False", "Installing")]}}),
                "InProgress: it is being installed",
            ),
            (
                json!({"status": {"conditions": [condition("Established", "False", "Broken")]}}),
                "Failed: Established says so",
            ),
            (
                json!({"status": {"conditions": [condition("NamesAccepted", "False", "")]}}),
                "Failed: NamesAccepted says so",
            ),
            (
                json!({"status": {"conditions": [condition("NamesAccepted", "True", ""), condition("Established", "True", "")]}}),
                "Ready",
            ),
        ],
    );
    // A Service of another group is none: its condition decides.
    check(
        "serving.knative.dev/v1",
        "Service",
        &[(
            json!({"status": {"conditions": [condition("Ready", "False", "")]}}),
            "InProgress: Ready says so",
        )],
    );
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("batch/v1", "CronJob"),
        ("policy/v1", "PodDisruptionBudget"),
    ] {
        check(api_version, kind, &[(json!({}), "Ready")]);
    }
}

#[test]
fn status_whose_name_is_written_with_an_escape_counts() {
    let text = r#"{"metadata": {"name": "x"},
        "\u0073tatus": {"conditions": [{"type": "Ready", "status": "False"}]}}"#;
    let kind = Kind::namespaced("example.com/v1", "Thing", "things");
    let object = Object::decode(&kind, text, None).unwrap();
    assert_eq!(of(&kind, &object).state, ReadinessState::InProgress);
}
