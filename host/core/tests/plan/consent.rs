//! Who may say that an object is this primary's, or may be deleted: a user, or the host; no guest.

use expect_test::{Expect, expect};
use innkeeper_core::Manager;
use innkeeper_core::old_names::{DELETABLE_ANNOTATION, KEPT_FOR_LABEL};
use innkeeper_core::ownership::RETAINED_FOR_LABEL;
use innkeeper_core::plan::ALLOW_DELETION_ANNOTATION;
use serde_json::{Value, json};

use crate::world::{World, desired_object, world};

const MADE: &str = "innkeeper/podroute/u0";
const MERGED: &str = "innkeeper/podroute/u1/merge";
const MERGED_FOR_ANOTHER: &str = "innkeeper/podroute/u7/merge";

fn held(manager: &str, operation: &str, metadata: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "fieldsV1": {"f:metadata": metadata}})
}

fn label_held() -> Value {
    json!({"f:labels": {format!("f:{RETAINED_FOR_LABEL}"): {}}})
}

/// A claim with the label of an object that outlived this primary, wanted again.
fn labelled(managers: &Value) -> World {
    labelled_as(RETAINED_FOR_LABEL, managers)
}

fn labelled_as(label: &str, managers: &Value) -> World {
    let mut claim = desired_object("PersistentVolumeClaim", "data", &json!({}));
    claim["policy"] = json!(["orphan", "deletable"]);
    let mut world = world(&json!([claim]));
    let identity = world.primary.identity();
    world.put(
        "PersistentVolumeClaim",
        &json!({"metadata": {"name": "data", "namespace": "web", "uid": "x", "resourceVersion": "3",
            "labels": {label: identity}, "managedFields": managers}}),
    );
    world
}

#[track_caller]
fn is_left(world: &World) {
    world.check(&expect!["skip PersistentVolumeClaim web/data: it exists and has no controller"]);
}

#[test]
fn retained_object_is_taken_up_only_if_this_module_made_it() {
    let adopted = expect!["adopt PersistentVolumeClaim web/data"];
    labelled(&json!([held(MADE, "Apply", &label_held())])).check(&adopted);
    // A user moved it here by the label.
    let relabelled = json!([held(MADE, "Apply", &json!({"f:labels": {}}))]);
    labelled(&relabelled).check(&adopted);

    is_left(&labelled(&json!([])));
    is_left(&labelled(&json!([held("kube-controller-manager", "Update", &label_held())])));
    is_left(&labelled(&json!([held(MERGED_FOR_ANOTHER, "Apply", &label_held())])));
    is_left(&labelled(&json!([held(MADE, "Update", &label_held())])));
    is_left(&labelled(&json!([held("innkeeper/other/u0", "Apply", &label_held())])));
    is_left(&labelled(&json!([held("innkeeper/podroute/finalizer", "Apply", &label_held())])));
    let mut on_status = held(MADE, "Apply", &label_held());
    on_status["subresource"] = "status".into();
    is_left(&labelled(&json!([on_status])));
}

#[test]
fn label_that_a_guest_merged_retains_nothing_whoever_made_the_object() {
    let merged = held(MERGED_FOR_ANOTHER, "Apply", &label_held());
    is_left(&labelled(&json!([held(MADE, "Apply", &json!({"f:labels": {"f:app": {}}})), merged])));
    let anothers = held("innkeeper/other/u9/merge", "Apply", &label_held());
    is_left(&labelled(&json!([held(MADE, "Apply", &label_held()), anothers])));
}

#[test]
fn object_that_was_only_merged_into_is_unmerged_before_it_is_adopted_by_its_true_labels() {
    let mut world = world(&json!([desired_object("ConfigMap", "theirs", &json!({}))]));
    world.adopt = true;
    let object = |labels: &Value, managers: &Value| {
        json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "resourceVersion": "3",
            "labels": labels, "managedFields": managers}})
    };
    let merged = |manager| json!([held(manager, "Apply", &json!({"f:labels": {"f:app": {}}}))]);
    world.put("ConfigMap", &object(&json!({"app": "x"}), &merged(MERGED)));
    world.check(&expect!["unmerge ConfigMap web/theirs"]);

    // Without the label that the guest merged, it is not the object that was meant.
    world.live.clear();
    world.put("ConfigMap", &object(&json!({}), &json!([])));
    world.check(&expect!["skip ConfigMap web/theirs: it exists and has no controller"]);
    // Nor if another primary of the module, or another module, merges it.
    for manager in ["innkeeper/podroute/u7/merge", "innkeeper/other/u1/merge"] {
        world.live.clear();
        world.put("ConfigMap", &object(&json!({"app": "x"}), &merged(manager)));
        world.check(&expect!["skip ConfigMap web/theirs: it exists and has no controller"]);
    }
}

/// A claim that this primary made and no longer wants, with the annotation that permits to delete
/// it.
fn claim_with_annotation(manager: &str, expected: &Expect) {
    claim_annotated_as(ALLOW_DELETION_ANNOTATION, manager, expected);
}

fn claim_annotated_as(name: &str, manager: &str, expected: &Expect) {
    let mut world = world(&json!([]));
    world.applied(&json!([desired_object("PersistentVolumeClaim", "data", &json!({}))]), |value| {
        value["metadata"]["annotations"][name] = "true".into();
        let annotation = json!({"f:annotations": {format!("f:{name}"): {}}});
        let managers = value["metadata"]["managedFields"].as_array_mut().unwrap();
        managers.push(held(manager, "Apply", &annotation));
    });
    world.check(expected);
}

#[test]
fn annotation_that_a_guest_merged_does_not_let_data_be_deleted() {
    let stays = expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ];
    claim_with_annotation(MERGED_FOR_ANOTHER, &stays);
    claim_with_annotation("innkeeper/other/u1", &stays);
    let goes = expect!["delete PersistentVolumeClaim web/data"];
    claim_with_annotation("kubectl-annotate", &goes);
    claim_with_annotation(&Manager::primary("podroute", "u0").to_string(), &goes);
}

#[test]
fn old_names_are_read_with_the_same_checks() {
    let held_as = |name: &str, manager: &str| {
        json!([held(manager, "Apply", &json!({"f:labels": {format!("f:{name}"): {}}}))])
    };
    let labelled = |manager: &str| labelled_as(KEPT_FOR_LABEL, &held_as(KEPT_FOR_LABEL, manager));
    labelled(MADE).check(&expect!["adopt PersistentVolumeClaim web/data"]);
    is_left(&labelled(MERGED_FOR_ANOTHER));
    is_left(&labelled("innkeeper/other/u0"));
    let goes = expect!["delete PersistentVolumeClaim web/data"];
    claim_annotated_as(DELETABLE_ANNOTATION, "kubectl-annotate", &goes);
    let stays = expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ];
    claim_annotated_as(DELETABLE_ANNOTATION, MERGED_FOR_ANOTHER, &stays);
}

#[test]
fn update_under_the_name_of_this_primarys_manager_makes_nothing_its_own() {
    let mut world = world(&json!([desired_object("ConfigMap", "theirs", &json!({}))]));
    for (operation, subresource) in [("Update", ""), ("Apply", "status")] {
        world.live.clear();
        world.put(
            "ConfigMap",
            &json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "managedFields": [
                {"manager": "innkeeper/podroute/u1", "operation": operation,
                    "subresource": subresource, "fieldsV1": {}}]}}),
        );
        world.check(&expect!["skip ConfigMap web/theirs: it exists and has no controller"]);
        assert!(!world.live[0].1.is_made_for("u1"), "{operation} {subresource}");
    }
}

#[test]
fn primary_is_never_taken_for_an_object_of_its_own() {
    let mut world = world(&json!([desired_object("ConfigMap", "itself", &json!({}))]));
    world.adopt = true;
    world.put(
        "ConfigMap",
        &json!({"metadata": {"name": "itself", "namespace": "web", "uid": "u1", "labels": {"app": "x"}}}),
    );
    world.check(&expect!["skip ConfigMap web/itself: it exists and has no controller"]);
}
