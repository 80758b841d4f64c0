//! Guests that answer something else for an earlier state of their primary than they did then.

use serde_json::{Value, json};

use crate::support::{
    GROUP, Script, Setup, Stage, block_on, condition as condition_of, config_map, definition,
};
use crate::updates::{NAMES, VERBS, condition, sizes, widget_group, widget_path, widgets, writes};

fn script() -> Script {
    let kind = |api_version: &str, kind: &str, plural: &str| json!({"kind": {"apiVersion": api_version, "kind": kind, "plural": plural}});
    Script::new()
        .owns(kind(&format!("{GROUP}/v1"), "Widget", "widgets"))
        .owns(kind("apps/v1", "ControllerRevision", "controllerrevisions"))
        .owns(kind("v1", "Secret", "secrets"))
}

/// A spec with Widgets of this size, and a mark that a guest finds in the primary only.
fn spec(size: u32, mark: &str) -> Value {
    let mut spec = widgets(&widget_group("RollingRecreate"), size);
    spec["complete"]["revisionHistory"] = json!({"fieldPaths": ["spec.complete", "spec.mark"]});
    spec["mark"] = mark.into();
    spec["zz"] = 1.into();
    spec
}

/// A stage whose update of Widgets from size 1 to 2 is stopped, and whose guest then answers with
/// this document for the first state.
async fn stopped(earlier: &Value) -> Stage {
    let stage = Setup::new(script())
        .may(&VERBS, GROUP, "widgets")
        .may(&VERBS, "apps", "controllerrevisions")
        .may(&VERBS, "", "secrets")
        .object(definition("Widget", "widgets"))
        .start()
        .await;
    stage.create("one", &spec(1, "old")).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    for name in NAMES {
        condition(&stage, name, "Ready", "True").await;
    }
    stage.set_spec("one", &spec(2, "new")).await;
    stage.settle().await;
    condition(&stage, "a", "Stalled", "True").await;
    stage.until_primary("one", "Synced", "False", "UpdateFailed").await;
    stage.push(&script().when("\"mark\":\"old\",\"zz\"", earlier)).await;
    stage.settle().await;
    assert_eq!(sizes(&stage).await, [2, 1, 1]);
    writes(&stage);
    stage
}

/// The first document of the guest, changed.
fn first(change: impl FnOnce(&mut Value)) -> Value {
    let mut first = spec(1, "old")["complete"].clone();
    change(&mut first);
    first
}

#[test]
fn earlier_document_gives_a_missing_object_and_nothing_else() {
    block_on(async {
        // Given a guest that desires more for the earlier state than it did then.
        let earlier = first(|document| {
            let objects = document["objects"].as_array_mut().unwrap();
            objects.extend(
                (0..50).map(|number| json!({"object": config_map(&format!("more-{number}"), "1")})),
            );
            let mut further = objects[0].clone();
            further["object"]["metadata"]["name"] = "further".into();
            objects.push(further);
            document["keep"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]);
            document["status"] = json!({"phase": "Earlier"});
            document["conditions"] =
                json!([{"type": "Earlier", "status": "True", "reason": "Earlier", "message": "m"}]);
            document["events"] = json!([{"type": "Warning", "reason": "Earlier", "message": "m"}]);
            document["requeueAfterSeconds"] = 1.into();
            document["finalized"] = true.into();
            document["revisionHistory"] = json!({"limit": 10, "fieldPaths": ["spec"]});
        });
        let stage = stopped(&earlier).await;

        // When an object is evicted, then it returns as it was, and nothing else happens.
        stage.api().delete(&widget_path("c")).await.unwrap();
        let runs = stage.runs();
        stage.pass(120).await;
        assert_eq!(sizes(&stage).await, [2, 1, 1]);
        assert_eq!(writes(&stage), ["apply widgets/c"]);
        assert!(stage.runs() - runs < 20, "{}", stage.runs() - runs);
        let primary = stage.primary("one").await;
        assert_eq!(primary["status"]["phase"], Value::Null);
        assert_eq!(condition_of(&primary, "Earlier"), None);
        let events = stage.events("one").await;
        assert!(events.iter().all(|(reason, _)| reason != "Earlier"), "{events:?}");
    });
}

#[test]
fn earlier_document_beyond_the_contract_or_the_grants_counts_for_nothing() {
    let object = |object: Value| {
        first(|document| {
            document["objects"].as_array_mut().unwrap().push(object);
        })
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken"}});
    let source = json!({"kind": "Secret", "namespace": "kube-system", "name": "token"});
    let cases = [
        object(json!({"object": secret, "valuesFrom": [source]})),
        object(
            json!({"object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}}),
        ),
        object(json!({"object": config_map("../x", "1")})),
        first(|document| document["objects"][2]["updateGroup"] = "other".into()),
        first(|document| document["updateGroups"][0]["maxUnavailable"] = 0.into()),
        first(|document| document["objects"] = json!([])),
        json!("desired"),
    ];
    for earlier in &cases {
        block_on(async {
            let stage = stopped(earlier).await;
            stage.api().delete(&widget_path("c")).await.unwrap();
            stage.pass(120).await;
            assert_eq!(sizes(&stage).await, [2, 1, 2], "{earlier}");
            assert_eq!(writes(&stage), ["apply widgets/c"], "{earlier}");
            stage.until_primary("one", "Synced", "False", "UpdateFailed").await;
            stage.until_module("Healthy", "True", "ReconcileSucceeded").await;
        });
    }
}
