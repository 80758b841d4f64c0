//! The planner: desired state, observed state, and the steps that follow.

#![allow(clippy::unwrap_used, reason = "an error fails the test")]

mod case;
mod conflicts;
mod consent;
mod merging;
mod outliving;
mod over_limit;
mod owner_version;
mod recreate;
mod revision_history;
mod revision_versions;
mod same_object;
mod update_model;
mod update_names;
mod update_times;
mod updates;
mod values;

use std::sync::Arc;

use expect_test::expect;
use innkeeper_contract::{Kind, Policy};
use innkeeper_core::ObjectRef;
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::plan::{self, RejectedApply};
use jiff::Timestamp;
use serde_json::{Value, json};

use case::{Case, NOW, case, deployment, desired_object, service};

#[test]
fn absent_objects_are_created_in_order() {
    case(&json!([service(), deployment(3)])).check(&expect![[r"
        create Deployment web/a
        create Service web/b"]]);
}

#[test]
fn object_in_sync_is_skipped() {
    let objects = json!([deployment(3), service()]);
    let mut case = case(&objects);
    case.applied(&objects, |_| {});
    case.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: in sync"]]);
}

#[test]
fn changed_desired_object_is_applied() {
    let mut case = case(&json!([deployment(5)]));
    case.applied(&json!([deployment(3)]), |_| {});
    case.check(&expect!["apply Deployment web/a: changed"]);
}

#[test]
fn drift_is_repaired_with_field_and_manager_in_the_reason() {
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |live| {
        let managers = live["metadata"]["managedFields"].as_array_mut().unwrap();
        managers[0]["fieldsV1"].as_object_mut().unwrap().remove("f:spec");
        managers.push(json!({"manager": "autoscaler", "operation": "Update", "subresource": "scale", "time": "2026-01-01T00:00:00Z"}));
        managers.push(json!({"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "time": "2026-01-02T00:00:00Z"}));
    });
    case.check(&expect!["apply Deployment web/a: autoscaler changed .spec.replicas"]);
}

#[test]
fn removed_owner_reference_is_drift() {
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |live| {
        live["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        let fields = &mut live["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"];
        fields.as_object_mut().unwrap().remove("f:ownerReferences");
    });
    case.check(&expect![
        "apply Deployment web/a: another manager changed .metadata.ownerReferences"
    ]);
}

#[test]
fn last_apply_in_memory_takes_precedence_over_the_annotation() {
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |_| {});
    let (object_ref, object) = case.live[0].clone();
    let last_applied =
        LastApplied::new(&case.desired_state.objects[0].body, &object, &case.primary.manager)
            .unwrap();
    case.state.applied.insert(object_ref, last_applied);
    case.check(&expect!["skip Deployment web/a: in sync"]);
    case.live.clear();
    case.applied(&objects, |live| live["metadata"]["uid"] = "another".into());
    case.check(&expect!["apply Deployment web/a: another manager changed "]);
}

#[test]
fn apply_under_the_name_of_the_manager_that_changes_the_digest_alone_is_drift() {
    // Given an object as the host applied it.
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |_| {});
    let (object_ref, object) = case.live[0].clone();
    let body = &case.desired_state.objects[0].body;
    let last_applied = LastApplied::new(body, &object, &case.primary.manager).unwrap();
    case.state.applied.insert(object_ref, last_applied);
    case.check(&expect!["skip Deployment web/a: in sync"]);

    // When a late apply of an earlier state arrives, then it is drift, and the fields say so.
    case.live.clear();
    case.applied(&json!([deployment(2)]), |_| {});
    case.check(&expect![[
        r#"apply Deployment web/a: another manager changed .metadata.annotations["innkeeper.dev/applied"]"#
    ]]);
}

#[test]
fn object_of_another_controller_is_a_conflict_and_blocks_all_creates() {
    let mut case = case(&json!([deployment(3), service()]));
    case.foreign(
        "Service",
        "b",
        &json!([{"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "name": "second", "uid": "u2", "controller": true}]),
    );
    case.check(&expect![[r#"
        skip Deployment web/a: held back, since Service web/b is not this primary's
        skip Service web/b: it is controlled by Podroute second; to let this primary have it, delete that owner, or its owner reference in the object; until then the host holds back Deployment web/a"#]]);
}

#[test]
fn conflict_does_not_block_the_repair_of_own_objects() {
    let mut case = case(&json!([deployment(5), service()]));
    case.applied(&json!([deployment(3)]), |_| {});
    case.foreign("Service", "b", &json!([]));
    case.check(&expect![[r"
        apply Deployment web/a: changed
        skip Service web/b: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true"]]);
}

#[test]
fn object_without_controller_is_adopted_when_it_has_the_labels() {
    let mut case = case(&json!([deployment(3), service()]));
    case.foreign("Deployment", "a", &json!([]));
    case.adopt = true;
    case.check(&expect![[r"
        adopt Deployment web/a
        create Service web/b"]]);
}

#[test]
fn object_without_controller_is_not_adopted_without_the_labels() {
    let mut case = case(&json!([deployment(3)]));
    case.put(
        "Deployment",
        &json!({"metadata": {"name": "a", "namespace": "web", "uid": "x", "labels": {"app": "y"}}}),
    );
    case.adopt = true;
    case.check(&expect!["skip Deployment web/a: it exists, has no controller, and lacks the labels app=x; add them to let this primary adopt it"]);
}

#[test]
fn object_of_another_controller_is_never_adopted() {
    let mut case = case(&json!([deployment(3)]));
    let owner =
        json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z", "controller": true}]);
    case.foreign("Deployment", "a", &owner);
    case.adopt = true;
    case.check(&expect!["skip Deployment web/a: it is controlled by X y; to let this primary have it, delete that owner, or its owner reference in the object"]);
}

#[test]
fn object_of_an_unserved_optional_kind_is_skipped() {
    let mut case = case(&json!([service(), desired_object("Route", "r", &json!({}))]));
    case.unserved = vec!["Route"];
    case.check(&expect![[r"
        skip Route web/r: the cluster does not serve its kind
        create Service web/b"]]);
    assert!(
        !case
            .plan()
            .steps
            .iter()
            .any(|step| matches!(&step.action, plan::Action::Skip(leave) if leave.is_problem()))
    );
}

#[test]
fn object_of_an_unserved_kind_is_a_problem_and_others_are_created() {
    let mut case = case(&json!([deployment(3), service()]));
    case.unserved = vec!["Deployment"];
    case.check(&expect![[r"
        skip Deployment web/a: the cluster does not serve its kind
        create Service web/b"]]);
    assert!(
        case.plan()
            .steps
            .iter()
            .any(|step| matches!(&step.action, plan::Action::Skip(leave) if leave.is_problem()))
    );
}

#[test]
fn terminating_object_is_skipped() {
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |live| {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    case.check(&expect!["skip Deployment web/a: being deleted"]);
}

#[test]
fn object_is_skipped_when_its_lookup_is_unknown() {
    let mut case = case(&json!([deployment(3), service()]));
    case.unknown = vec!["Deployment"];
    case.check(&expect![[r"
        skip Deployment web/a: the response to the last write never arrived
        create Service web/b"]]);
}

#[test]
fn undesired_objects_are_deleted_in_reverse_order() {
    let mut case = case(&json!([]));
    case.applied(
        &json!([deployment(3), service(), desired_object("ConfigMap", "c", &json!({}))]),
        |_| {},
    );
    case.check(&expect![[r"
        delete Service web/b
        delete Deployment web/a
        delete ConfigMap web/c"]]);
}

#[test]
fn prune_waits_for_a_clean_complete_and_readable_round() {
    let mut case = case(&json!([deployment(3)]));
    case.applied(&json!([deployment(3), service()]), |_| {});
    case.state.clean = false;
    case.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
    assert!(case.plan().prune_pending);
    case.state.clean = true;
    case.readable = false;
    case.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
    case.readable = true;
    case.complete = false;
    case.check(&expect!["skip Deployment web/a: in sync"]);
}

#[test]
fn prune_waits_when_the_round_has_a_problem() {
    let mut case = case(&json!([deployment(3)]));
    case.applied(&json!([service()]), |_| {});
    case.foreign("Deployment", "a", &json!([]));
    case.check(&expect![[r"
        skip Deployment web/a: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
}

#[test]
fn kept_objects_and_objects_of_others_are_not_pruned() {
    let mut case = case(&json!([]));
    case.applied(&json!([service()]), |_| {});
    case.put(
        "Deployment",
        &json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "ownerReferences": [case.primary.owner_reference()]}}),
    );
    case.desired_state.keep.insert(case.live[0].0.reference());
    case.check(&expect![""]);
}

#[test]
fn object_with_data_is_pruned_only_with_the_annotation() {
    let claim = |policy: &Value| {
        let mut claim = desired_object("PersistentVolumeClaim", "data", &json!({}));
        claim["policy"] = policy.clone();
        claim
    };
    let mut kept = case(&json!([]));
    kept.applied(&json!([claim(&json!([]))]), |_| {});
    kept.check(&expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ]);
    let mut deletable = case(&json!([]));
    deletable.applied(&json!([claim(&json!(["deletable"]))]), |_| {});
    deletable.check(&expect!["delete PersistentVolumeClaim web/data"]);
}

#[test]
fn create_only_object_is_created_and_never_applied_again() {
    let object = |replicas| {
        let mut object = deployment(replicas);
        object["policy"] = json!(["create-only"]);
        json!([object])
    };
    let mut case = case(&object(5));
    case.check(&expect!["create Deployment web/a"]);
    case.applied(&object(3), |_| {});
    case.check(&expect!["skip Deployment web/a: created once, not updated"]);
}

#[test]
fn rejected_body_is_not_sent_again_until_it_changes() {
    let mut case = case(&json!([deployment(3)]));
    let rejected = |case: &Case, immutable| RejectedApply {
        digest: case.desired_state.objects[0].digest().to_owned(),
        reason: "Malformed".into(),
        message: "unknown field".into(),
        immutable,
    };
    let object_ref = case.desired_state.objects[0].object_ref.clone();
    case.state.rejected.insert(object_ref.clone(), rejected(&case, false));
    case.check(&expect!["skip Deployment web/a: unknown field"]);
    case.state.rejected.get_mut(&object_ref).unwrap().digest = "another".into();
    case.check(&expect!["create Deployment web/a"]);
}

#[test]
fn object_is_recreated_for_an_immutable_field_only_with_the_policy() {
    let object = |policy: &Value| {
        let mut object = deployment(5);
        object["policy"] = policy.clone();
        json!([object])
    };
    for (policy, expected) in [
        (json!([]), expect!["skip Deployment web/a: field is immutable"]),
        (json!(["recreate-when-immutable"]), expect!["recreate Deployment web/a"]),
    ] {
        let mut case = case(&object(&policy));
        case.applied(&json!([deployment(3)]), |_| {});
        case.rejected_as_immutable("field is immutable");
        case.check(&expected);
        case.live.clear();
        case.check(&expect!["create Deployment web/a"]);
    }
}

#[test]
fn object_in_a_field_fight_is_skipped_and_others_are_applied() {
    let mut case = case(&json!([deployment(3), service()]));
    case.applied(&json!([deployment(3), service()]), |live| {
        let entry = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
        entry.as_object_mut().unwrap().remove("f:spec");
    });
    let object_ref = case.desired_state.objects[0].object_ref.clone();
    for second in 0..6 {
        let at = Timestamp::from_second(NOW - 10 + second).unwrap();
        case.state.reverts.record(&object_ref, &[".spec.replicas".into()], "autoscaler", at);
    }
    case.check(&expect![[r"
        skip Deployment web/a: autoscaler keeps setting .spec.replicas; the host stops applying it for a while
        apply Service web/b: another manager changed .spec.selector.app"]]);
}

#[test]
fn object_in_two_versions_of_its_kind_is_one_object() {
    let objects = json!([deployment(3)]);
    let mut case = case(&objects);
    case.applied(&objects, |_| {});
    // The same object, as a cache of another version shows it.
    let (object_ref, object) = case.live[0].clone();
    let other = Kind::namespaced("apps/v1beta1", "Deployment", "deployments");
    case.live.push((ObjectRef::new(Arc::new(other), object_ref.key), object));
    case.check(&expect!["skip Deployment web/a: in sync"]);
}

#[test]
fn rejected_adoption_is_skipped_with_the_message_of_the_server() {
    let mut case = case(&json!([deployment(3)]));
    case.foreign("Deployment", "a", &json!([]));
    case.adopt = true;
    case.rejected_as_immutable("spec.selector: field is immutable");
    case.check(&expect!["skip Deployment web/a: spec.selector: field is immutable"]);
    // With the policy, the host recreates it.
    case.desired_state.objects[0].policy.insert(Policy::RecreateWhenImmutable);
    case.check(&expect!["recreate Deployment web/a"]);
}
