//! The planner, a case at a time: what is wanted, what is, and the steps that follow.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod consent;
mod merging;
mod outliving;
mod world;

use std::sync::Arc;

use expect_test::expect;
use innkeeper_contract::{Kind, Policy};
use innkeeper_core::ObjectRef;
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::plan::{self, Rejected};
use jiff::Timestamp;
use serde_json::{Value, json};

use world::{NOW, World, deployment, desired_object, service, world};

#[test]
fn what_is_absent_is_created_in_order() {
    world(&json!([service(), deployment(3)])).check(&expect![[r"
        create Deployment web/a
        create Service web/b"]]);
}

#[test]
fn an_object_in_sync_is_skipped() {
    let objects = json!([deployment(3), service()]);
    let mut world = world(&objects);
    world.applied(&objects, |_| {});
    world.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: in sync"]]);
}

#[test]
fn a_changed_desired_object_is_applied() {
    let mut world = world(&json!([deployment(5)]));
    world.applied(&json!([deployment(3)]), |_| {});
    world.check(&expect!["apply Deployment web/a: changed"]);
}

#[test]
fn drift_is_repaired_and_names_the_field_and_the_manager() {
    let objects = json!([deployment(3)]);
    let mut world = world(&objects);
    world.applied(&objects, |live| {
        let managers = live["metadata"]["managedFields"].as_array_mut().unwrap();
        managers[0]["fieldsV1"].as_object_mut().unwrap().remove("f:spec");
        managers.push(json!({"manager": "autoscaler", "operation": "Update", "subresource": "scale", "time": "2026-01-01T00:00:00Z"}));
        managers.push(json!({"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "time": "2026-01-02T00:00:00Z"}));
    });
    world.check(&expect!["apply Deployment web/a: autoscaler changed .spec.replicas"]);
}

#[test]
fn an_owner_reference_that_was_taken_off_is_drift() {
    let objects = json!([deployment(3)]);
    let mut world = world(&objects);
    world.applied(&objects, |live| {
        live["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        let fields = &mut live["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"];
        fields.as_object_mut().unwrap().remove("f:ownerReferences");
    });
    world.check(&expect![
        "apply Deployment web/a: another manager changed .metadata.ownerReferences"
    ]);
}

#[test]
fn what_was_remembered_goes_before_the_annotation() {
    let objects = json!([deployment(3)]);
    let mut world = world(&objects);
    world.applied(&objects, |_| {});
    let (object_ref, object) = world.live[0].clone();
    let remembered =
        LastApplied::new(&world.desired_state.objects[0].body, &object, &world.primary.manager)
            .unwrap();
    world.memory.applied.insert(object_ref, remembered);
    world.check(&expect!["skip Deployment web/a: in sync"]);
    world.live.clear();
    world.applied(&objects, |live| live["metadata"]["uid"] = "another".into());
    world.check(&expect!["apply Deployment web/a: another manager changed "]);
}

#[test]
fn an_object_of_another_controller_is_a_conflict_and_stops_all_creates() {
    let mut world = world(&json!([deployment(3), service()]));
    world.foreign(
        "Service",
        "b",
        &json!([{"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "name": "second", "uid": "u2", "controller": true}]),
    );
    world.check(&expect![[r"
        skip Deployment web/a: not created, since Service web/b is not this primary's
        skip Service web/b: it is controlled by Podroute second"]]);
}

#[test]
fn a_conflict_does_not_stop_the_repair_of_what_is_ours() {
    let mut world = world(&json!([deployment(5), service()]));
    world.applied(&json!([deployment(3)]), |_| {});
    world.foreign("Service", "b", &json!([]));
    world.check(&expect![[r"
        apply Deployment web/a: changed
        skip Service web/b: it exists and has no controller"]]);
}

#[test]
fn adoption_takes_over_what_nobody_owns_and_has_the_labels() {
    let mut world = world(&json!([deployment(3), service()]));
    world.foreign("Deployment", "a", &json!([]));
    world.adopt = true;
    world.check(&expect![[r"
        adopt Deployment web/a
        create Service web/b"]]);
}

#[test]
fn adoption_needs_the_labels() {
    let mut world = world(&json!([deployment(3)]));
    world.put(
        "Deployment",
        &json!({"metadata": {"name": "a", "namespace": "web", "uid": "x", "labels": {"app": "y"}}}),
    );
    world.adopt = true;
    world.check(&expect!["skip Deployment web/a: it exists and has no controller"]);
}

#[test]
fn adoption_never_takes_what_somebody_owns() {
    let mut world = world(&json!([deployment(3)]));
    let owner =
        json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z", "controller": true}]);
    world.foreign("Deployment", "a", &owner);
    world.adopt = true;
    world.check(&expect!["skip Deployment web/a: it is controlled by X y"]);
}

#[test]
fn an_optional_kind_that_is_not_served_is_left() {
    let mut world = world(&json!([service(), desired_object("Route", "r", &json!({}))]));
    world.unserved = vec!["Route"];
    world.check(&expect![[r"
        skip Route web/r: the cluster does not serve its kind
        create Service web/b"]]);
    assert!(
        !world
            .plan()
            .steps
            .iter()
            .any(|step| matches!(&step.action, plan::Action::Skip(leave) if leave.is_problem()))
    );
}

#[test]
fn a_needed_kind_that_is_not_served_is_a_problem_and_the_others_go_on() {
    let mut world = world(&json!([deployment(3), service()]));
    world.unserved = vec!["Deployment"];
    world.check(&expect![[r"
        skip Deployment web/a: the cluster does not serve its kind
        create Service web/b"]]);
    assert!(
        world
            .plan()
            .steps
            .iter()
            .any(|step| matches!(&step.action, plan::Action::Skip(leave) if leave.is_problem()))
    );
}

#[test]
fn a_terminating_object_is_waited_for() {
    let objects = json!([deployment(3)]);
    let mut world = world(&objects);
    world.applied(&objects, |live| {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    world.check(&expect!["skip Deployment web/a: being deleted"]);
}

#[test]
fn what_is_unknown_is_not_written() {
    let mut world = world(&json!([deployment(3), service()]));
    world.unknown = vec!["Deployment"];
    world.check(&expect![[r"
        skip Deployment web/a: the response to the last write never arrived
        create Service web/b"]]);
}

#[test]
fn what_is_no_longer_wanted_is_deleted_last_kinds_first() {
    let mut world = world(&json!([]));
    world.applied(
        &json!([deployment(3), service(), desired_object("ConfigMap", "c", &json!({}))]),
        |_| {},
    );
    world.check(&expect![[r"
        delete Service web/b
        delete Deployment web/a
        delete ConfigMap web/c"]]);
}

#[test]
fn nothing_is_pruned_unless_all_is_known_and_clean() {
    let mut world = world(&json!([deployment(3)]));
    world.applied(&json!([deployment(3), service()]), |_| {});
    world.memory.clean = false;
    world.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
    assert!(world.plan().prune_pending);
    world.memory.clean = true;
    world.readable = false;
    world.check(&expect![[r"
        skip Deployment web/a: in sync
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
    world.readable = true;
    world.complete = false;
    world.check(&expect!["skip Deployment web/a: in sync"]);
}

#[test]
fn a_problem_in_the_round_stops_prune() {
    let mut world = world(&json!([deployment(3)]));
    world.applied(&json!([service()]), |_| {});
    world.foreign("Deployment", "a", &json!([]));
    world.check(&expect![[r"
        skip Deployment web/a: it exists and has no controller
        skip Service web/b: no longer desired, deleted after one more clean round"]]);
}

#[test]
fn what_is_kept_or_made_by_others_is_not_pruned() {
    let mut world = world(&json!([]));
    world.applied(&json!([service()]), |_| {});
    world.put(
        "Deployment",
        &json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "ownerReferences": [world.primary.owner_reference()]}}),
    );
    world.desired_state.keep.insert(world.live[0].0.reference());
    world.check(&expect![""]);
}

#[test]
fn kinds_that_hold_data_are_not_pruned_unless_the_object_says_so() {
    let claim = |policy: &Value| {
        let mut claim = desired_object("PersistentVolumeClaim", "data", &json!({}));
        claim["policy"] = policy.clone();
        claim
    };
    let mut kept = world(&json!([]));
    kept.applied(&json!([claim(&json!([]))]), |_| {});
    kept.check(&expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ]);
    let mut deletable = world(&json!([]));
    deletable.applied(&json!([claim(&json!(["deletable"]))]), |_| {});
    deletable.check(&expect!["delete PersistentVolumeClaim web/data"]);
}

#[test]
fn create_only_is_made_once() {
    let object = |replicas| {
        let mut object = deployment(replicas);
        object["policy"] = json!(["create-only"]);
        json!([object])
    };
    let mut world = world(&object(5));
    world.check(&expect!["create Deployment web/a"]);
    world.applied(&object(3), |_| {});
    world.check(&expect!["skip Deployment web/a: created once, not updated"]);
}

#[test]
fn what_the_server_refuses_for_good_is_not_tried_again_until_something_else_is_wanted() {
    let mut world = world(&json!([deployment(3)]));
    let rejected = |world: &World, immutable| Rejected {
        digest: world.desired_state.objects[0].digest().to_owned(),
        reason: "Malformed".into(),
        message: "unknown field".into(),
        immutable,
    };
    let object_ref = world.desired_state.objects[0].object_ref.clone();
    world.memory.rejected.insert(object_ref.clone(), rejected(&world, false));
    world.check(&expect!["skip Deployment web/a: unknown field"]);
    world.memory.rejected.get_mut(&object_ref).unwrap().digest = "another".into();
    world.check(&expect!["create Deployment web/a"]);
}

#[test]
fn an_immutable_field_is_changed_by_recreating_only_where_the_guest_said_so() {
    let object = |policy: &Value| {
        let mut object = deployment(5);
        object["policy"] = policy.clone();
        json!([object])
    };
    for (policy, expected) in [
        (json!([]), expect!["skip Deployment web/a: field is immutable"]),
        (json!(["recreate-when-immutable"]), expect!["recreate Deployment web/a"]),
    ] {
        let mut world = world(&object(&policy));
        world.applied(&json!([deployment(3)]), |_| {});
        world.memory.rejected.insert(
            world.desired_state.objects[0].object_ref.clone(),
            Rejected {
                digest: world.desired_state.objects[0].digest().to_owned(),
                reason: "Immutable".into(),
                message: "field is immutable".into(),
                immutable: true,
            },
        );
        world.check(&expected);
        world.live.clear();
        world.check(&expect!["create Deployment web/a"]);
    }
}

#[test]
fn a_contested_field_is_skipped_and_other_objects_are_applied() {
    let mut world = world(&json!([deployment(3), service()]));
    world.applied(&json!([deployment(3), service()]), |live| {
        let entry = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
        entry.as_object_mut().unwrap().remove("f:spec");
    });
    let object_ref = world.desired_state.objects[0].object_ref.clone();
    for second in 0..6 {
        let at = Timestamp::from_second(NOW - 10 + second).unwrap();
        world.memory.reverts.record(&object_ref, &[".spec.replicas".into()], "autoscaler", at);
    }
    world.check(&expect![[r"
        skip Deployment web/a: autoscaler keeps setting .spec.replicas; the host stops applying it for a while
        apply Service web/b: another manager changed .spec.selector.app"]]);
}

#[test]
fn an_object_that_is_seen_in_two_versions_of_its_kind_is_one_object() {
    let objects = json!([deployment(3)]);
    let mut world = world(&objects);
    world.applied(&objects, |_| {});
    // The same object, as a cache of another version shows it.
    let (object_ref, object) = world.live[0].clone();
    let other = Kind::namespaced("apps/v1beta1", "Deployment", "deployments");
    world.live.push((ObjectRef::new(Arc::new(other), object_ref.key), object));
    world.check(&expect!["skip Deployment web/a: in sync"]);
}

#[test]
fn an_adoption_that_the_server_refuses_for_good_is_told_and_not_tried_again() {
    let mut world = world(&json!([deployment(3)]));
    world.foreign("Deployment", "a", &json!([]));
    world.adopt = true;
    world.memory.rejected.insert(
        world.desired_state.objects[0].object_ref.clone(),
        Rejected {
            digest: world.desired_state.objects[0].digest().to_owned(),
            reason: "Immutable".into(),
            message: "spec.selector: field is immutable".into(),
            immutable: true,
        },
    );
    world.check(&expect!["skip Deployment web/a: spec.selector: field is immutable"]);
    // Unless the guest says that it may be made anew.
    world.desired_state.objects[0].policy.insert(Policy::RecreateWhenImmutable);
    world.check(&expect!["recreate Deployment web/a"]);
}
