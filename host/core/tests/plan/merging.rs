//! Merging into objects of others: nothing is created, nothing taken by force, nothing deleted.

use expect_test::expect;
use innkeeper_core::plan::Rejected;
use serde_json::{Value, json};

use crate::world::{World, desired_object, entry, world};

fn merged() -> Value {
    let mut merged = desired_object("ConfigMap", "theirs", &json!({"team": "a"}));
    merged["policy"] = json!(["merge"]);
    merged
}

/// Somebody's object into which this primary has merged.
fn after_merge(edit: impl Fn(&mut Value)) -> World {
    let mut world = world(&json!([merged()]));
    let body = world.desired_state.objects[0].body.clone();
    let mut value = body.clone();
    value["metadata"]["uid"] = "theirs".into();
    value["metadata"]["resourceVersion"] = "5".into();
    value["metadata"]["managedFields"] = json!([
        {"manager": "innkeeper/podroute/u1/merge", "operation": "Apply", "fieldsV1": entry(&body)},
        {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}},
    ]);
    edit(&mut value);
    world.put("ConfigMap", &value);
    world
}

#[test]
fn fields_are_merged_into_whosever_it_is() {
    let mut world = world(&json!([merged()]));
    world.foreign("ConfigMap", "theirs", &json!([]));
    world.check(&expect!["merge ConfigMap web/theirs: changed"]);
    let theirs =
        json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": true}]);
    world.live.clear();
    world.foreign("ConfigMap", "theirs", &theirs);
    world.check(&expect!["merge ConfigMap web/theirs: changed"]);
}

#[test]
fn what_is_merged_already_is_left() {
    after_merge(|_| {}).check(&expect!["skip ConfigMap web/theirs: in sync"]);
}

#[test]
fn a_missing_merge_target_is_not_created() {
    world(&json!([merged()])).check(&expect![
        "skip ConfigMap web/theirs: fields are to be merged into it, but it does not exist"
    ]);
}

#[test]
fn a_terminating_object_is_not_merged_into() {
    let world = after_merge(|value| {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    world.check(&expect!["skip ConfigMap web/theirs: being deleted"]);
}

#[test]
fn a_field_that_somebody_took_is_asked_for_again_without_force() {
    let world = after_merge(|value| {
        value["metadata"]["managedFields"][0]["fieldsV1"].as_object_mut().unwrap().remove("f:spec");
    });
    world.check(&expect!["merge ConfigMap web/theirs: kubectl changed .spec.team"]);
}

#[test]
fn what_is_no_longer_wanted_is_taken_back_and_never_deleted() {
    let mut world = after_merge(|_| {});
    world.desired_state.objects.clear();
    world.check(&expect!["unmerge ConfigMap web/theirs"]);
    assert_eq!(world.plan().pending_deletion.len(), 1);
    world.memory.clean = false;
    world.check(&expect![
        "skip ConfigMap web/theirs: no longer desired, deleted after one more clean round"
    ]);
    world.complete = false;
    world.check(&expect![""]);
}

#[test]
fn what_the_server_refuses_for_good_is_not_sent_again() {
    let mut world = after_merge(|value| value["metadata"]["managedFields"] = json!([]));
    let desired_object = &world.desired_state.objects[0];
    let rejected = Rejected {
        digest: desired_object.digest().to_owned(),
        reason: "Malformed".to_owned(),
        message: "no such field".to_owned(),
        immutable: false,
    };
    world.memory.rejected.insert(desired_object.object_ref.clone(), rejected);
    world.check(&expect!["skip ConfigMap web/theirs: no such field"]);
}
