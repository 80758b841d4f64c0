//! Update groups: the operator updates a few objects at a time, and stops at one that fails.

use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::support::{
    GROUP, NAMESPACE, Script, Setup, Stage, block_on, complete, config_map, config_map_path, count,
    definition, refusal,
};

/// The names of the objects of most groups, in their order.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The rights of the module to its Widgets.
pub(crate) const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// A spec whose guest desires these objects in this group.
pub(crate) fn grouped(group: &Value, objects: &[Value]) -> Value {
    let objects: Vec<Value> = objects
        .iter()
        .map(|object| json!({"object": object, "updateGroup": group["name"]}))
        .collect();
    complete(&json!({"objects": objects, "updateGroups": [group]}))
}

pub(crate) fn group(method: &str) -> Value {
    json!({"name": "maps", "method": method})
}

/// A spec whose guest desires the ConfigMaps `a` to `c` with this value in a group.
pub(crate) fn maps(group: &Value, value: &str) -> Value {
    grouped(group, &NAMES.map(|name| config_map(name, value)))
}

/// A group of Widgets, which are available as soon as they are Ready.
pub(crate) fn widget_group(method: &str) -> Value {
    json!({"name": "widgets", "method": method, "statusChecks": [{"type": "Ready"}]})
}

/// A spec whose guest desires the Widgets `a` to `c` with this size in a group.
pub(crate) fn widgets(group: &Value, size: u32) -> Value {
    let widget = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": size}})
    };
    grouped(group, &NAMES.map(widget))
}

pub(crate) fn widget_path(name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/widgets/{name}")
}

/// A stage whose module has made the ConfigMaps `a` to `c` with the value 1 in a group.
pub(crate) async fn stage_with_maps(group: &Value) -> Stage {
    let stage = Stage::start(Script::new()).await;
    stage.create("one", &maps(group, "1")).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.settle().await;
    stage.writes();
    stage
}

/// A stage whose module has made the Widgets `a` to `c` of size 1, all ready.
async fn stage_with_widgets(group: &Value) -> Stage {
    let kind = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "plural": "widgets"});
    let setup = Setup::new(Script::new().owns(json!({ "kind": kind })))
        .may(&VERBS, GROUP, "widgets")
        .object(definition("Widget", "widgets"));
    let stage = setup.start().await;
    stage.create("one", &widgets(group, 1)).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    all_ready(&stage).await;
    stage.settle().await;
    writes(&stage);
    stage
}

/// Gives a Widget its only condition, as its controller does.
pub(crate) async fn condition(stage: &Stage, name: &str, type_: &str, status: &str) {
    let object = stage.get(&widget_path(name)).await.unwrap();
    let status = json!({"status": {"conditions": [{"type": type_, "status": status,
        "reason": "Because", "message": "it is so", "observedGeneration": object["metadata"]["generation"]}]}});
    let path = format!("{}/status", widget_path(name));
    stage.api().send("PATCH", &path, Content::MergePatch, &status).await.unwrap();
}

/// Makes the Widgets `a` to `c` ready, as their controller does.
pub(crate) async fn all_ready(stage: &Stage) {
    for name in NAMES {
        condition(stage, name, "Ready", "True").await;
    }
}

/// Changes the primary to a spec that updates the Widget `a` first, and lets that one fail. Returns
/// the message of `Synced`.
pub(crate) async fn fail_update(stage: &Stage, spec: &Value) -> String {
    stage.set_spec("one", spec).await;
    stage.settle().await;
    condition(stage, "a", "Stalled", "True").await;
    stage.until_primary("one", "Synced", "False", "UpdateFailed").await
}

/// The writes to objects of the group since the last call, without dry runs.
pub(crate) fn writes(stage: &Stage) -> Vec<String> {
    let mut sent = stage.sent_writes();
    sent.retain(|one| !one.query.contains("dryRun") && !one.path.contains("/scripts/"));
    sent.iter().map(crate::support::Sent::line).collect()
}

/// The sizes of the Widgets `a` to `c`.
pub(crate) async fn sizes(stage: &Stage) -> Vec<i64> {
    let mut sizes = Vec::new();
    for name in NAMES {
        let widget = stage.get(&widget_path(name)).await.unwrap_or_default();
        sizes.push(widget["spec"]["size"].as_i64().unwrap_or_default());
    }
    sizes
}

#[test]
fn update_of_more_objects_than_a_turn_has_rounds_ends_in_order() {
    block_on(async {
        // Given 12 ConfigMaps that are recreated one after the other.
        let group = group("RollingRecreate");
        let names: Vec<String> = (10..22).rev().map(|number| format!("m{number}")).collect();
        let spec = |value: &str| {
            let objects: Vec<Value> = names.iter().map(|name| config_map(name, value)).collect();
            grouped(&group, &objects)
        };
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &spec("1")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        writes(&stage);

        // When all change.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;

        // Then each is deleted and created before the next one, in the order of the guest.
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let expected: Vec<String> = names
            .iter()
            .flat_map(|name| {
                [format!("delete configmaps/{name}"), format!("apply configmaps/{name}")]
            })
            .collect();
        assert_eq!(writes(&stage), expected);
        let events = stage.events("one").await;
        assert!(events.iter().all(|(reason, _)| reason != "NotConverging"), "{events:?}");
    });
}

#[test]
fn update_waits_until_an_updated_object_is_available() {
    block_on(async {
        // Given three Widgets that are ready.
        let group = widget_group("RollingInPlace");
        let stage = stage_with_widgets(&group).await;

        // When all change, then the first one is updated, and the condition says what follows.
        stage.set_spec("one", &widgets(&group, 2)).await;
        stage.settle().await;
        let message = stage.until_primary("one", "Synced", "False", "Updating").await;
        let expected = "update group widgets: 1 of 3 objects is updated; it waits for Widget ns/a: its condition Ready is not of its present generation";
        assert_eq!(message, expected);
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        assert_eq!(stage.outdated_objects(), 2);

        // When it is not ready, then the others stay.
        condition(&stage, "a", "Ready", "False").await;
        stage.pass(600).await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        // When it is ready, then the next one follows.
        condition(&stage, "a", "Ready", "True").await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 2, 1]);
        condition(&stage, "b", "Ready", "True").await;
        stage.settle().await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(sizes(&stage).await, [2, 2, 2]);
        let expected = ["apply widgets/a", "apply widgets/b", "apply widgets/c"];
        assert_eq!(writes(&stage), expected);
        assert_eq!(stage.outdated_objects(), 0);
        let events = stage.events("one").await;
        assert_eq!(events.iter().filter(|(reason, _)| reason == "Updating").count(), 1);
    });
}

#[test]
fn failed_object_stops_the_update_and_a_correction_goes_on() {
    block_on(async {
        // Given an update whose first object fails.
        let group = widget_group("RollingRecreate");
        let stage = stage_with_widgets(&group).await;
        let message = fail_update(&stage, &widgets(&group, 2)).await;
        let expected = "update group widgets is stopped: 1 of 3 objects is updated, and Widget ns/a failed: it is so; correct the primary or delete the object, then the host goes on";
        assert_eq!(message, expected);
        stage.pass(600).await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);
        // A bad change is no failure of the module.
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;

        // When the primary is corrected, then the failed object is updated first.
        writes(&stage);
        stage.set_spec("one", &widgets(&group, 3)).await;
        stage.settle().await;
        assert_eq!(writes(&stage), ["delete widgets/a", "apply widgets/a"]);
        for name in NAMES {
            condition(&stage, name, "Ready", "True").await;
            stage.settle().await;
        }
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(sizes(&stage).await, [3, 3, 3]);
    });
}

#[test]
fn object_that_is_no_longer_desired_is_deleted_while_an_update_is_stopped() {
    block_on(async {
        // Given a stopped update.
        let group = widget_group("RollingInPlace");
        let stage = stage_with_widgets(&group).await;
        fail_update(&stage, &widgets(&group, 2)).await;

        // When an object is no longer desired, then it is deleted.
        let mut spec = widgets(&group, 2);
        spec["complete"]["objects"].as_array_mut().unwrap().pop();
        stage.set_spec("one", &spec).await;
        stage.until_gone(&widget_path("c")).await;
        assert_eq!(sizes(&stage).await, [2, 1, 0]);
    });
}

#[test]
fn updated_object_is_available_after_its_time_without_any_event() {
    block_on(async {
        // Given ConfigMaps that count as available after 60 seconds.
        let mut group = group("RollingInPlace");
        group["minReadySeconds"] = 60.into();
        let stage = stage_with_maps(&group).await;
        stage.pass(120).await;

        // When they change, then one is updated each minute.
        stage.set_spec("one", &maps(&group, "2")).await;
        for (expected, seconds) in [("a", 50), ("b", 60), ("c", 60)] {
            stage.pass(seconds).await;
            assert_eq!(writes(&stage), [format!("apply configmaps/{expected}")]);
        }
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn paused_group_is_updated_when_the_guest_ends_the_pause() {
    block_on(async {
        // Given a paused group.
        let mut group = group("RollingInPlace");
        group["paused"] = true.into();
        let stage = stage_with_maps(&group).await;

        // When its objects change, then they stay.
        stage.set_spec("one", &maps(&group, "2")).await;
        let message = stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        assert_eq!(message, "update group maps is paused: 0 of 3 objects are updated");
        assert_eq!(writes(&stage), [""; 0]);

        // When the pause ends, then they are updated.
        group["paused"] = false.into();
        stage.set_spec("one", &maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(writes(&stage).len(), 3);
    });
}

#[test]
fn object_of_an_on_delete_group_changes_when_a_user_deletes_it() {
    block_on(async {
        // Given an OnDelete group.
        let group = group("OnDelete");
        let stage = stage_with_maps(&group).await;

        // When its objects change, then nothing is written, and the primary is synced.
        stage.set_spec("one", &maps(&group, "2")).await;
        stage.settle().await;
        let message = stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(
            message,
            "Every desired object is applied; 3 objects of update group maps change when they are deleted."
        );
        assert_eq!(writes(&stage), [""; 0]);

        // When a user deletes one, then it is created as it is desired.
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(writes(&stage), ["apply configmaps/b"]);
        assert_eq!(stage.config_map("b").await.unwrap()["data"]["value"], "2");
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
    });
}

#[test]
fn restarted_host_continues_an_update_within_its_limit() {
    block_on(async {
        // Given an update that waits for its first object.
        let group = widget_group("RollingRecreate");
        let stage = stage_with_widgets(&group).await;
        stage.set_spec("one", &widgets(&group, 2)).await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);
        writes(&stage);

        // When the host restarts, then it waits as well.
        let stage = stage.stop().await.start().await;
        stage.settle().await;
        assert_eq!(writes(&stage), [""; 0]);

        // When the object is ready, then the next one follows.
        condition(&stage, "a", "Ready", "True").await;
        stage.settle().await;
        assert_eq!(writes(&stage), ["delete widgets/b", "apply widgets/b"]);
    });
}

#[test]
fn object_whose_digest_alone_differs_is_not_recreated() {
    block_on(async {
        // Given a group that recreates, and no host.
        let stage = stage_with_maps(&group("Recreate")).await;
        let uid = stage.config_map("b").await.unwrap()["metadata"]["uid"].clone();
        let stopped = stage.stop().await;

        // When somebody removes one digest and forges another.
        for (name, digest) in [("a", Value::Null), ("b", json!("00000000000000000000000000000000"))]
        {
            let change = json!({"metadata": {"annotations": {"innkeeper.dev/applied": digest}}});
            stopped.merge_at(&config_map_path(name), &change).await;
        }
        let stage = stopped.start().await;
        stage.settle().await;

        // Then the host applies both, and deletes nothing.
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(writes(&stage), ["apply configmaps/a", "apply configmaps/b"]);
        assert_eq!(stage.config_map("b").await.unwrap()["metadata"]["uid"], uid);
    });
}

#[test]
fn object_whose_update_the_api_server_refuses_is_not_deleted() {
    block_on(async {
        // Given a group that recreates, and an API server that refuses the dry run.
        let group = group("RollingRecreate");
        for (code, reason) in
            [(403, "Forbidden"), (422, "Invalid"), (400, "BadRequest"), (503, "ServiceUnavailable")]
        {
            let stage = stage_with_maps(&group).await;
            stage.proxy().intercept(move |sent| {
                if sent.query.contains("dryRun") {
                    refusal(code, reason, "it is not allowed")
                } else {
                    crate::support::Reply::Forward
                }
            });

            // When the objects change, then nothing is deleted, and no other object is asked about.
            stage.set_spec("one", &maps(&group, "2")).await;
            stage.pass(120).await;
            let sent: Vec<String> =
                stage.sent_writes().iter().map(crate::support::Sent::line).collect();
            let counts = count(&sent);
            assert!(counts.keys().all(|line| !line.starts_with("delete")), "{code}: {counts:?}");
            assert!(counts.contains_key("apply configmaps/a"), "{code}: {counts:?}");
            assert!(!counts.contains_key("apply configmaps/b"), "{code}: {counts:?}");

            // When the API server accepts it, then the update goes on.
            stage.proxy().forward();
            stage.set_spec("one", &maps(&group, "3")).await;
            stage.pass(600).await;
            stage.until_primary("one", "Synced", "True", "Applied").await;
        }
    });
}

#[test]
fn primary_that_is_being_deleted_waits_for_no_update() {
    block_on(async {
        // Given a finalizing guest, and an update that waits.
        let mut group = group("RollingInPlace");
        group["minReadySeconds"] = 86_400.into();
        let stage = Stage::start(Script::new().finalizes()).await;
        let mut spec = maps(&group, "1");
        spec["finalizing"] = maps(&group, "2")["complete"].clone();
        spec["finalizing"]["finalized"] = false.into();
        stage.create("one", &spec).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When the primary is deleted, then all objects change at once.
        writes(&stage);
        stage.delete("one").await;
        stage.settle().await;
        let expected = ["apply configmaps/a", "apply configmaps/b", "apply configmaps/c"];
        assert_eq!(writes(&stage), expected);
    });
}

#[test]
fn guest_that_desires_something_else_in_each_run_recreates_within_bounds() {
    block_on(async {
        // Given a guest that always desires another value than it observes.
        let desiring = |value: &str| maps(&group("RollingRecreate"), value)["complete"].clone();
        let script = Script::new()
            .when("\"value\":\"1\"", &desiring("2"))
            .when("\"value\":\"2\"", &desiring("1"))
            .when("\"kind\":\"Script\"", &desiring("1"));
        let stage = Stage::start(script).await;

        // When it runs for an hour.
        stage.create("one", &json!({})).await;
        stage.pass(3_600).await;

        // Then the host gives up after each few rounds, and waits longer and longer.
        stage.until_primary("one", "Synced", "False", "NotConverging").await;
        let writes = writes(&stage);
        let deletes = writes.iter().filter(|line| line.starts_with("delete")).count();
        assert!((1..400).contains(&deletes), "{deletes} deletes");
    });
}

#[test]
fn host_that_ends_between_a_delete_and_its_create_leaves_the_other_objects() {
    block_on(async {
        // Given an update whose first object is deleted, and cannot be created.
        let group = group("RollingRecreate");
        let stage = stage_with_maps(&group).await;
        stage.proxy().intercept(|sent| {
            let is_create = sent.path.ends_with("/configmaps/a") && sent.method == "PATCH";
            if is_create && !sent.query.contains("dryRun") {
                refusal(503, "ServiceUnavailable", "it is away")
            } else {
                crate::support::Reply::Forward
            }
        });
        stage.set_spec("one", &maps(&group, "2")).await;
        stage.until_gone(&config_map_path("a")).await;
        stage.pass(60).await;

        // When the host restarts, then it deletes no other object.
        let stage = stage.stop().await.start().await;
        stage.pass(60).await;
        assert!(writes(&stage).iter().all(|line| !line.starts_with("delete configmaps/b")));
        for name in ["b", "c"] {
            assert_eq!(stage.config_map(name).await.unwrap()["data"]["value"], "1");
        }

        // When the object can be created, then the update ends.
        stage.proxy().forward();
        stage.pass(600).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(stage.config_map("c").await.unwrap()["data"]["value"], "2");
    });
}

#[test]
fn update_waits_for_an_object_that_a_finalizer_holds() {
    block_on(async {
        // Given a Widget with a finalizer in a group that recreates.
        let group = widget_group("RollingRecreate");
        let stage = stage_with_widgets(&group).await;
        let finalizers = |value: Value| json!({"metadata": {"finalizers": value}});
        stage.merge_at(&widget_path("a"), &finalizers(json!(["example.com/hold"]))).await;

        // When all change, then the first one is being deleted, and the others stay.
        stage.set_spec("one", &widgets(&group, 2)).await;
        let message = stage.until_primary("one", "Synced", "False", "Updating").await;
        assert_eq!(
            message,
            "update group widgets: 0 of 3 objects are updated; it waits for Widget ns/a: it is being deleted"
        );
        stage.pass(600).await;
        assert_eq!(writes(&stage), ["delete widgets/a"]);

        // When the finalizer goes, then the update goes on.
        stage.merge_at(&widget_path("a"), &finalizers(Value::Null)).await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);
    });
}
