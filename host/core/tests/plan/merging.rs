//! Merging into objects of others: the host creates nothing, deletes nothing and does not force.

use expect_test::expect;
use innkeeper_core::plan::RejectedApply;
use serde_json::{Value, json};

use crate::case::{Case, case, desired_object, entry};

fn merged() -> Value {
    let mut merged = desired_object("ConfigMap", "theirs", &json!({"team": "a"}));
    merged["policy"] = json!(["merge"]);
    merged
}

/// An object of another owner into which the module has merged.
fn after_merge(edit: impl Fn(&mut Value)) -> Case {
    let mut case = case(&json!([merged()]));
    let body = case.desired_state.objects[0].body.clone();
    let mut value = body.clone();
    value["metadata"]["uid"] = "theirs".into();
    value["metadata"]["resourceVersion"] = "5".into();
    value["metadata"]["managedFields"] = json!([
        {"manager": "innkeeper/podroute/u1/merge", "operation": "Apply", "fieldsV1": entry(&body)},
        {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}},
    ]);
    edit(&mut value);
    case.put("ConfigMap", &value);
    case
}

#[test]
fn fields_are_merged_into_objects_with_and_without_controller() {
    let mut case = case(&json!([merged()]));
    case.foreign("ConfigMap", "theirs", &json!([]));
    case.check(&expect!["merge ConfigMap web/theirs: changed"]);
    let theirs =
        json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true}]);
    case.live.clear();
    case.foreign("ConfigMap", "theirs", &theirs);
    case.check(&expect!["merge ConfigMap web/theirs: changed"]);
}

#[test]
fn merge_target_in_sync_is_skipped() {
    after_merge(|_| {}).check(&expect!["skip ConfigMap web/theirs: in sync"]);
}

#[test]
fn missing_merge_target_is_not_created() {
    case(&json!([merged()])).check(&expect![
        "skip ConfigMap web/theirs: fields are to be merged into it, but it does not exist"
    ]);
}

#[test]
fn terminating_merge_target_is_skipped() {
    let case = after_merge(|value| {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    case.check(&expect!["skip ConfigMap web/theirs: being deleted"]);
}

#[test]
fn merged_field_that_another_manager_changed_is_merged_again() {
    let case = after_merge(|value| {
        value["metadata"]["managedFields"][0]["fieldsV1"].as_object_mut().unwrap().remove("f:spec");
    });
    case.check(&expect!["merge ConfigMap web/theirs: kubectl changed .spec.team"]);
}

#[test]
fn undesired_merge_is_unmerged_and_the_object_never_deleted() {
    let mut case = after_merge(|_| {});
    case.desired_state.objects.clear();
    case.check(&expect!["unmerge ConfigMap web/theirs"]);
    assert_eq!(case.plan().pending_deletion.len(), 1);
    case.state.clean = false;
    case.check(&expect![
        "skip ConfigMap web/theirs: no longer desired, deleted after one more clean round"
    ]);
    case.complete = false;
    case.check(&expect![""]);
}

#[test]
fn rejected_merge_is_not_sent_again() {
    let mut case = after_merge(|value| value["metadata"]["managedFields"] = json!([]));
    let desired_object = &case.desired_state.objects[0];
    let rejected = RejectedApply {
        digest: desired_object.digest().to_owned(),
        reason: "Malformed".to_owned(),
        message: "no such field".to_owned(),
        immutable: false,
    };
    case.state.rejected.insert(desired_object.object_ref.clone(), rejected);
    case.check(&expect!["skip ConfigMap web/theirs: no such field"]);
}
