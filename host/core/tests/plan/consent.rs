//! Consent to adopt or to delete an object: users and the host can give it, guests cannot.

use expect_test::{Expect, expect};
use innkeeper_core::Manager;
use innkeeper_core::old_names::{DELETABLE_ANNOTATION, KEPT_FOR_LABEL};
use innkeeper_core::ownership::RETAINED_FOR_LABEL;
use innkeeper_core::plan::ALLOW_DELETION_ANNOTATION;
use serde_json::{Value, json};

use crate::case::{Case, case, desired_object};

const MADE: &str = "innkeeper/podroute/u0";
const MERGED: &str = "innkeeper/podroute/u1/merge";
const MERGED_FOR_ANOTHER: &str = "innkeeper/podroute/u7/merge";

fn held(manager: &str, operation: &str, metadata: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "fieldsV1": {"f:metadata": metadata}})
}

fn label_held() -> Value {
    json!({"f:labels": {format!("f:{RETAINED_FOR_LABEL}"): {}}})
}

/// A desired claim that exists with the label of objects that outlived this primary.
fn labelled(managers: &Value) -> Case {
    labelled_as(RETAINED_FOR_LABEL, managers)
}

fn labelled_as(label: &str, managers: &Value) -> Case {
    let mut claim = desired_object("PersistentVolumeClaim", "data", &json!({}));
    claim["policy"] = json!(["orphan", "deletable"]);
    let mut case = case(&json!([claim]));
    let identity = case.primary.identity();
    case.put(
        "PersistentVolumeClaim",
        &json!({"metadata": {"name": "data", "namespace": "web", "uid": "x", "resourceVersion": "3",
            "labels": {label: identity}, "managedFields": managers}}),
    );
    case
}

#[track_caller]
fn is_skipped(case: &Case) {
    case.check(&expect!["skip PersistentVolumeClaim web/data: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true"]);
}

#[test]
fn retained_object_is_adopted_only_if_this_module_made_it() {
    let adopted = expect!["adopt PersistentVolumeClaim web/data"];
    labelled(&json!([held(MADE, "Apply", &label_held())])).check(&adopted);
    // A user changed the label to this primary.
    let relabelled = json!([held(MADE, "Apply", &json!({"f:labels": {}}))]);
    labelled(&relabelled).check(&adopted);

    is_skipped(&labelled(&json!([])));
    is_skipped(&labelled(&json!([held("kube-controller-manager", "Update", &label_held())])));
    is_skipped(&labelled(&json!([held(MERGED_FOR_ANOTHER, "Apply", &label_held())])));
    is_skipped(&labelled(&json!([held(MADE, "Update", &label_held())])));
    is_skipped(&labelled(&json!([held("innkeeper/other/u0", "Apply", &label_held())])));
    is_skipped(&labelled(&json!([held("innkeeper/podroute/finalizer", "Apply", &label_held())])));
    let mut on_status = held(MADE, "Apply", &label_held());
    on_status["subresource"] = "status".into();
    is_skipped(&labelled(&json!([on_status])));
}

#[test]
fn merged_label_retains_nothing_even_if_this_module_made_the_object() {
    let merged = held(MERGED_FOR_ANOTHER, "Apply", &label_held());
    is_skipped(&labelled(&json!([
        held(MADE, "Apply", &json!({"f:labels": {"f:app": {}}})),
        merged
    ])));
    let anothers = held("innkeeper/other/u9/merge", "Apply", &label_held());
    is_skipped(&labelled(&json!([held(MADE, "Apply", &label_held()), anothers])));
}

#[test]
fn merged_object_is_unmerged_before_its_labels_decide_about_adoption() {
    let mut case = case(&json!([desired_object("ConfigMap", "theirs", &json!({}))]));
    case.adopt = true;
    let object = |labels: &Value, managers: &Value| {
        json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "resourceVersion": "3",
            "labels": labels, "managedFields": managers}})
    };
    let merged = |manager| json!([held(manager, "Apply", &json!({"f:labels": {"f:app": {}}}))]);
    case.put("ConfigMap", &object(&json!({"app": "x"}), &merged(MERGED)));
    case.check(&expect!["unmerge ConfigMap web/theirs"]);

    // Without the merged label it lacks the labels of the desired object.
    case.live.clear();
    case.put("ConfigMap", &object(&json!({}), &json!([])));
    case.check(&expect!["skip ConfigMap web/theirs: it exists, has no controller, and lacks the labels app=x; add them to let this primary adopt it"]);
    // The same holds if another primary of the module, or another module, merged the label.
    for manager in ["innkeeper/podroute/u7/merge", "innkeeper/other/u1/merge"] {
        case.live.clear();
        case.put("ConfigMap", &object(&json!({"app": "x"}), &merged(manager)));
        case.check(&expect!["skip ConfigMap web/theirs: it exists, has no controller, and lacks the labels app=x; add them to let this primary adopt it"]);
    }
}

/// Plans for an undesired claim of this primary that has the annotation which permits its deletion.
fn claim_with_annotation(manager: &str, expected: &Expect) {
    claim_annotated_as(ALLOW_DELETION_ANNOTATION, manager, expected);
}

fn claim_annotated_as(name: &str, manager: &str, expected: &Expect) {
    let mut case = case(&json!([]));
    case.applied(&json!([desired_object("PersistentVolumeClaim", "data", &json!({}))]), |value| {
        value["metadata"]["annotations"][name] = "true".into();
        let annotation = json!({"f:annotations": {format!("f:{name}"): {}}});
        let managers = value["metadata"]["managedFields"].as_array_mut().unwrap();
        managers.push(held(manager, "Apply", &annotation));
    });
    case.check(expected);
}

#[test]
fn merged_annotation_does_not_permit_deletion() {
    let kept = expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ];
    claim_with_annotation(MERGED_FOR_ANOTHER, &kept);
    claim_with_annotation("innkeeper/other/u1", &kept);
    let deleted = expect!["delete PersistentVolumeClaim web/data"];
    claim_with_annotation("kubectl-annotate", &deleted);
    claim_with_annotation(&Manager::primary("podroute", "u0").to_string(), &deleted);
}

#[test]
fn old_names_are_read_with_the_same_checks() {
    let held_as = |name: &str, manager: &str| {
        json!([held(manager, "Apply", &json!({"f:labels": {format!("f:{name}"): {}}}))])
    };
    let labelled = |manager: &str| labelled_as(KEPT_FOR_LABEL, &held_as(KEPT_FOR_LABEL, manager));
    labelled(MADE).check(&expect!["adopt PersistentVolumeClaim web/data"]);
    is_skipped(&labelled(MERGED_FOR_ANOTHER));
    is_skipped(&labelled("innkeeper/other/u0"));
    let deleted = expect!["delete PersistentVolumeClaim web/data"];
    claim_annotated_as(DELETABLE_ANNOTATION, "kubectl-annotate", &deleted);
    let kept = expect![
        "skip PersistentVolumeClaim web/data: no longer desired, kept since its kind holds data"
    ];
    claim_annotated_as(DELETABLE_ANNOTATION, MERGED_FOR_ANOTHER, &kept);
}

#[test]
fn object_is_not_owned_through_an_update_or_a_subresource() {
    let mut case = case(&json!([desired_object("ConfigMap", "theirs", &json!({}))]));
    for (operation, subresource) in [("Update", ""), ("Apply", "status")] {
        case.live.clear();
        case.put(
            "ConfigMap",
            &json!({"metadata": {"name": "theirs", "namespace": "web", "uid": "x", "managedFields": [
                {"manager": "innkeeper/podroute/u1", "operation": operation,
                    "subresource": subresource, "fieldsV1": {}}]}}),
        );
        case.check(&expect!["skip ConfigMap web/theirs: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true"]);
        assert!(!case.live[0].1.is_made_for("u1"), "{operation} {subresource}");
    }
}

#[test]
fn primary_is_never_adopted_as_its_own_object() {
    let mut case = case(&json!([desired_object("ConfigMap", "itself", &json!({}))]));
    case.adopt = true;
    case.put(
        "ConfigMap",
        &json!({"metadata": {"name": "itself", "namespace": "web", "uid": "u1", "labels": {"app": "x"}}}),
    );
    case.check(&expect!["skip ConfigMap web/itself: it is the primary itself"]);
}
