//! The revision history of primaries: the operator stores it, and creates a missing object of an
//! update that stops as it was.

use serde_json::{Value, json};

use crate::support::{
    NAMESPACE, Script, Setup, Stage, block_on, complete, config_map, config_map_path, definition,
    primary_path,
};
use crate::updates::{
    NAMES, VERBS, all_ready, condition, fail_update, group, maps, sizes, widget_group, widget_path,
    widgets, writes,
};

/// The path of the ControllerRevisions of all primaries.
pub(crate) const REVISIONS: &str = "/apis/apps/v1/namespaces/ns/controllerrevisions";

/// A guest that owns ControllerRevisions.
pub(crate) fn script() -> Script {
    let kind = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
        "plural": "controllerrevisions"});
    Script::new().owns(json!({ "kind": kind }))
}

/// The same document, whose guest lets the host store this many earlier states of its spec.
fn with_history(mut spec: Value, limit: u32) -> Value {
    spec["complete"]["revisionHistory"] = json!({ "limit": limit });
    spec
}

/// A spec whose guest desires the ConfigMaps `a` to `c` with this value, and has a history.
fn kept_maps(group: &Value, value: &str) -> Value {
    with_history(maps(group, value), 2)
}

/// A spec whose guest desires the Widgets `a` to `c` with this size, and has a history.
fn kept_widgets(group: &Value, size: u32) -> Value {
    with_history(widgets(group, size), 2)
}

/// A stage whose primary has this spec, with the rights to ControllerRevisions and Widgets.
pub(crate) async fn stage_with(script: Script, spec: &Value) -> Stage {
    let stage = Setup::new(script)
        .may(&VERBS, "apps", "controllerrevisions")
        .may(&VERBS, crate::support::GROUP, "widgets")
        .object(definition("Widget", "widgets"))
        .start()
        .await;
    stage.create("one", spec).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.settle().await;
    stage.writes();
    stage
}

/// A stage whose module has made the ConfigMaps `a` to `c` with the value 1 in a group.
async fn stage_with_maps(group: &Value) -> Stage {
    stage_with(script(), &kept_maps(group, "1")).await
}

/// A stage whose module has made the Widgets `a` to `c` of size 1, all ready.
async fn stage_with_widgets(group: &Value) -> Stage {
    let kind = json!({"apiVersion": format!("{}/v1", crate::support::GROUP), "kind": "Widget",
        "plural": "widgets"});
    let stage = stage_with(script().owns(json!({ "kind": kind })), &kept_widgets(group, 1)).await;
    all_ready(&stage).await;
    stage.settle().await;
    stage.writes();
    stage
}

/// The values of the ConfigMaps `a` to `c`.
pub(crate) async fn values(stage: &Stage) -> Vec<String> {
    let mut values = Vec::new();
    for name in NAMES {
        let map = stage.config_map(name).await.unwrap_or_default();
        values.push(map["data"]["value"].as_str().unwrap_or_default().to_owned());
    }
    values
}

/// The stored revisions by number, each with the value of the first ConfigMap in its spec.
async fn revisions(stage: &Stage) -> Vec<(i64, String)> {
    let revisions = stage.api().list(REVISIONS).await.unwrap();
    let mut revisions: Vec<(i64, String)> = revisions
        .iter()
        .map(|one| {
            let value = &one["data"]["spec"]["complete"]["objects"][0]["object"]["data"]["value"];
            (one["revision"].as_i64().unwrap(), value.as_str().unwrap_or_default().to_owned())
        })
        .collect();
    revisions.sort();
    revisions
}

fn numbered(revisions: &[(i64, &str)]) -> Vec<(i64, String)> {
    revisions.iter().map(|(number, value)| (*number, (*value).to_owned())).collect()
}

#[test]
fn evicted_object_of_a_stopped_update_returns_as_it_was() {
    block_on(async {
        // Given an update that a failed object has stopped.
        let group = widget_group("RollingRecreate");
        let stage = stage_with_widgets(&group).await;
        fail_update(&stage, &kept_widgets(&group, 2)).await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        // When the others are evicted, then they return as they were.
        for name in ["b", "c"] {
            writes(&stage);
            stage.api().delete(&widget_path(name)).await.unwrap();
            stage.settle().await;
            assert_eq!(writes(&stage), [format!("apply widgets/{name}")]);
            assert_eq!(sizes(&stage).await, [2, 1, 1]);
        }
        stage.pass(600).await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);
        stage.until_primary("one", "Synced", "False", "UpdateFailed").await;
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;

        // When the primary is corrected, then all are updated.
        stage.set_spec("one", &kept_widgets(&group, 3)).await;
        stage.settle().await;
        for _ in NAMES {
            all_ready(&stage).await;
            stage.settle().await;
        }
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(sizes(&stage).await, [3, 3, 3]);
    });
}

#[test]
fn object_evicted_while_a_stopped_change_is_corrected_returns_from_before_the_change() {
    block_on(async {
        // Given an update that a failed object has stopped.
        let group = widget_group("RollingRecreate");
        let stage = stage_with_widgets(&group).await;
        fail_update(&stage, &kept_widgets(&group, 2)).await;

        // And a correction, for which the failed object terminates.
        let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
        stage.merge_at(&widget_path("a"), &finalizers(json!(["example.com/wait"]))).await;
        stage.set_spec("one", &kept_widgets(&group, 3)).await;
        stage.settle().await;
        let failed = stage.get(&widget_path("a")).await.unwrap();
        assert!(!failed["metadata"]["deletionTimestamp"].is_null(), "{failed}");

        // When another object is evicted, then it returns as it was before both changes.
        stage.api().delete(&widget_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        // When the failed object is gone and the others become ready, then all are updated.
        stage.merge_at(&widget_path("a"), &finalizers(Value::Null)).await;
        for _ in 0..=NAMES.len() {
            stage.settle().await;
            all_ready(&stage).await;
        }
        stage.settle().await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(sizes(&stage).await, [3, 3, 3]);
    });
}

#[test]
fn evicted_object_over_the_limit_of_an_update_returns_as_it_was() {
    block_on(async {
        // Given an update that waits for its first object.
        let group = widget_group("RollingInPlace");
        let stage = stage_with_widgets(&group).await;
        stage.set_spec("one", &kept_widgets(&group, 2)).await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        // When another object is evicted, then it returns as it was.
        stage.api().delete(&widget_path("c")).await.unwrap();
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);

        // When the first one is ready, then the one that does not serve is updated next.
        condition(&stage, "a", "Ready", "True").await;
        stage.settle().await;
        assert_eq!(sizes(&stage).await, [2, 1, 2]);
    });
}

#[test]
fn paused_group_recreates_missing_objects_as_they_were() {
    block_on(async {
        // Given a group whose guest pauses a change.
        let mut group = group("RollingInPlace");
        let stage = stage_with_maps(&group).await;
        group["paused"] = true.into();
        stage.set_spec("one", &kept_maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;

        // When a user deletes an object, then it returns as it was.
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(values(&stage).await, ["1", "1", "1"]);

        // When the pause ends, then all are updated.
        group["paused"] = false.into();
        stage.set_spec("one", &kept_maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(values(&stage).await, ["2", "2", "2"]);
    });
}

#[test]
fn missing_object_is_created_as_desired_now_without_a_history() {
    block_on(async {
        // Given a paused change of a guest without a history.
        let mut group = group("RollingInPlace");
        let stage = stage_with(script(), &maps(&group, "1")).await;
        group["paused"] = true.into();
        stage.set_spec("one", &maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;

        // When a user deletes an object, then it is created as it is desired now.
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(values(&stage).await, ["1", "2", "1"]);
        assert_eq!(revisions(&stage).await, []);
    });
}

#[test]
fn history_keeps_its_limit_and_ends_when_the_guest_asks_for_none() {
    block_on(async {
        // Given a primary with a history of one earlier state.
        let group = group("InPlace");
        let spec = |value: &str| with_history(maps(&group, value), 1);
        let stage = stage_with(script(), &spec("1")).await;
        assert_eq!(revisions(&stage).await, numbered(&[(1, "1")]));

        // When it changes, then each state is stored, and the limit stays.
        for (value, expected) in [("2", [(1, "1"), (2, "2")]), ("3", [(2, "2"), (3, "3")])] {
            stage.set_spec("one", &spec(value)).await;
            stage.settle().await;
            assert_eq!(revisions(&stage).await, numbered(&expected));
        }

        // When it returns to an earlier state, then that has the highest number.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;
        assert_eq!(revisions(&stage).await, numbered(&[(3, "3"), (4, "2")]));

        // When the guest has no history any more, then the host deletes what it stored.
        stage.set_spec("one", &maps(&group, "2")).await;
        stage.settle().await;
        assert_eq!(revisions(&stage).await, []);
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn history_costs_one_request_for_each_change() {
    block_on(async {
        // Given a primary with a history of one earlier state.
        let group = group("InPlace");
        let spec = |value: &str| with_history(maps(&group, value), 1);
        let stage = stage_with(script(), &spec("1")).await;
        let of_revisions = |stage: &Stage| {
            let mut sent = stage.requests_for_objects();
            sent.retain(|line| line.contains("controllerrevisions/"));
            let verb = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
            sent.iter().map(verb).collect::<Vec<_>>()
        };

        // When it changes, then the host stores the state by one request, before the objects.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;
        let lines = writes(&stage);
        assert!(lines[0].starts_with("apply controllerrevisions/one-"), "{lines:?}");
        assert_eq!(lines.len(), 1 + NAMES.len(), "{lines:?}");

        // When it changes again, then the host also deletes one.
        stage.set_spec("one", &spec("3")).await;
        stage.settle().await;
        assert_eq!(of_revisions(&stage), ["apply", "delete"]);

        // When it returns to a stored state, then the host applies one.
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;
        assert_eq!(of_revisions(&stage), ["apply"]);

        // When a field changes that is not stored, then the host writes none.
        stage.annotate("one", "example.com/note", &json!("x")).await;
        stage.settle().await;
        assert_eq!(of_revisions(&stage), [""; 0]);
    });
}

#[test]
fn restarted_host_uses_the_stored_revision() {
    block_on(async {
        // Given a paused change, and no host.
        let mut group = group("RollingInPlace");
        let stage = stage_with_maps(&group).await;
        group["paused"] = true.into();
        stage.set_spec("one", &kept_maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        stage.settle().await;
        writes(&stage);
        let stopped = stage.stop().await;

        // When an object is deleted and a host starts, then the object returns as it was.
        stopped.api().delete(&config_map_path("b")).await.unwrap();
        let stage = stopped.start().await;
        stage.settle().await;
        assert_eq!(writes(&stage), ["apply configmaps/b"]);
        assert_eq!(values(&stage).await, ["1", "1", "1"]);
    });
}

#[test]
fn deleting_primary_writes_no_revision() {
    block_on(async {
        // Given a primary with a finalizer and a stored revision.
        let group = group("InPlace");
        let mut spec = kept_maps(&group, "1");
        spec["finalizing"] = spec["complete"].clone();
        let stage = stage_with(script().finalizes(), &spec).await;
        let stored = revisions(&stage).await;
        assert_eq!(stored, numbered(&[(1, "1")]));

        // When it is deleted and changed, then nothing is stored or deleted.
        stage.delete("one").await;
        stage.settle().await;
        stage.merge("one", &json!({"spec": {"more": "2"}})).await;
        stage.settle().await;
        assert_eq!(revisions(&stage).await, stored);

        // When the finalization is done, then Kubernetes deletes the revision.
        stage.merge("one", &json!({"spec": {"finalizing": {"finalized": true}}})).await;
        stage.until_gone(&primary_path("one")).await;
        stage.settle().await;
        assert_eq!(revisions(&stage).await, []);
        assert!(writes(&stage).iter().all(|line| !line.contains("controllerrevisions")));
    });
}

#[test]
fn guest_that_fails_for_an_earlier_revision_changes_nothing() {
    block_on(async {
        // Given a paused change, and a new version of the guest that is refused for the old spec.
        let mut group = group("RollingInPlace");
        let spec = |group: &Value, mode: &str, value: &str| {
            let mut spec = kept_maps(group, value);
            spec["a"] = mode.into();
            spec
        };
        let stage = stage_with(script(), &spec(&group, "old", "1")).await;
        group["paused"] = true.into();
        stage.set_spec("one", &spec(&group, "new", "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}});
        let refused = crate::support::desired(&[secret]);
        stage.push(&script().when("},\"spec\":{\"a\":\"old\"", &refused)).await;
        stage.settle().await;
        let runs = stage.runs();

        // When an object is deleted, then it is created as it is desired now.
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(values(&stage).await, ["1", "2", "1"]);

        // And the call with the old spec is no problem of the primary.
        assert!(stage.runs() > runs + 1, "the guest was called with the old spec");
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        assert_eq!(stage.failures("UndeclaredKind"), 0);
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;
    });
}

#[test]
fn fields_that_are_too_large_are_not_stored_and_updates_go_on() {
    block_on(async {
        // Given a primary with a history.
        let group = group("InPlace");
        let stage = stage_with_maps(&group).await;

        // When its spec becomes too large to store.
        let mut spec = kept_maps(&group, "2");
        spec["more"] = "x".repeat(257 << 10).into();
        stage.set_spec("one", &spec).await;
        stage.settle().await;

        // Then an Event says so, and the objects change.
        assert_eq!(values(&stage).await, ["2", "2", "2"]);
        assert_eq!(revisions(&stage).await, numbered(&[(1, "1")]));
        let events = stage.events("one").await;
        assert!(events.iter().any(|(reason, _)| reason == "RevisionTooLarge"), "{events:?}");
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn number_that_a_tenant_changes_is_repaired_and_a_forged_revision_is_not_used() {
    block_on(async {
        // Given a paused change.
        let mut group = group("RollingInPlace");
        let stage = stage_with_maps(&group).await;
        group["paused"] = true.into();
        stage.set_spec("one", &kept_maps(&group, "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        stage.settle().await;
        let stored = stage.api().list(REVISIONS).await.unwrap();

        // When a tenant adds a copy of the newest one with another content and a higher number.
        let mut forged = stored.iter().max_by_key(|one| one["revision"].as_i64()).unwrap().clone();
        forged["metadata"] = json!({"name": "one-0000000000", "namespace": NAMESPACE,
            "ownerReferences": forged["metadata"]["ownerReferences"],
            "annotations": forged["metadata"]["annotations"]});
        let objects = &mut forged["data"]["spec"]["complete"]["objects"];
        for object in objects.as_array_mut().unwrap() {
            object["object"]["data"]["value"] = "forged".into();
        }
        forged["revision"] = 99.into();
        stage.apply(&forged).await;

        // And changes the number of a genuine one.
        let name = stored[0]["metadata"]["name"].as_str().unwrap();
        stage.merge_at(&format!("{REVISIONS}/{name}"), &json!({"revision": 0})).await;
        stage.settle().await;

        // Then an object that is deleted returns as it was, and the forged one stays the tenant's.
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;
        assert_eq!(values(&stage).await, ["1", "1", "1"]);
        let revisions = revisions(&stage).await;
        assert!(revisions.contains(&(99, "forged".to_owned())), "{revisions:?}");
        assert!(revisions.iter().all(|(number, _)| *number > 0), "{revisions:?}");
    });
}

#[test]
fn history_of_a_guest_that_owns_no_revisions_is_refused_with_what_to_do() {
    block_on(async {
        let stage = Stage::start(Script::new()).await;
        let desired = json!({"objects": [{"object": config_map("a", "1")}], "revisionHistory": {}});
        stage.create("one", &complete(&desired)).await;
        let message = stage.until_primary("one", "Synced", "False", "MalformedObject").await;
        assert!(message.contains("add `.owns::<ControllerRevision>()`"), "{message}");
        assert_eq!(stage.config_map("a").await, None);
    });
}
