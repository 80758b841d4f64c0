//! The API versions of stored revisions: a module moves to another version of its primaries' kind.

use serde_json::{Value, json};

use crate::revision_history::{REVISIONS, script, stage_with, values};
use crate::support::{GROUP, Script, Stage, block_on, config_map_path};
use crate::updates::{group, maps, writes};

/// The annotation of a revision that records the API version.
const API_VERSION: &str = "innkeeper.dev/revision-api-version";

/// The path of the definition of the primaries.
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scripts.test.example.dev";

/// A spec whose guest desires the ConfigMaps `a` to `c` with this value. The host stores its field
/// `a`.
fn spec(group: &Value, a: &str, value: &str) -> Value {
    let mut spec = maps(group, value);
    spec["complete"]["revisionHistory"] = json!({"fieldPaths": ["spec.a"]});
    spec["a"] = a.into();
    spec
}

/// A guest that desires the value 1 whenever it sees the primary in its first state.
fn remembering() -> Script {
    let first = spec(&group("RollingInPlace"), "first", "1");
    script().when("},\"spec\":{\"a\":\"first\"", &first["complete"])
}

/// A stage with this guest, whose primary is in its second state.
async fn stage_in_second_state(script: Script) -> Stage {
    let group = group("RollingInPlace");
    let stage = stage_with(script, &spec(&group, "first", "1")).await;
    stage.set_spec("one", &spec(&group, "second", "1")).await;
    stage.settle().await;
    assert_eq!(versions(&stage).await, pairs(&[("first", "v1"), ("second", "v1")]));
    serve_second_version(&stage).await;
    stage
}

/// Lets the API server serve the primaries in `v2` too.
pub(crate) async fn serve_second_version(stage: &Stage) {
    let definition = stage.get(DEFINITION).await.unwrap();
    let first = &definition["spec"]["versions"][0];
    let mut second = first.clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    stage.merge_at(DEFINITION, &json!({"spec": {"versions": [first, second]}})).await;
}

/// Gives the module the guest with its primaries in this version.
pub(crate) async fn move_to(stage: &Stage, script: Script, version: &str) {
    let primary = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Script",
        "plural": "scripts"});
    stage.push(&script.with("primary", primary)).await;
    stage.settle().await;
}

/// Deletes an object of a paused change to the third state. Returns what the host makes of it.
async fn values_after_delete(stage: &Stage) -> Vec<String> {
    let mut group = group("RollingInPlace");
    group["paused"] = true.into();
    stage.set_spec("one", &spec(&group, "third", "2")).await;
    stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
    stage.api().delete(&config_map_path("b")).await.unwrap();
    stage.settle().await;
    values(stage).await
}

/// The stored fields with the API version of each, oldest first.
async fn versions(stage: &Stage) -> Vec<(String, String)> {
    let mut revisions = stage.api().list(REVISIONS).await.unwrap();
    revisions.sort_by_key(|one| one["revision"].as_i64());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    revisions
        .iter()
        .map(|one| {
            let api_version = text(&one["metadata"]["annotations"][API_VERSION]);
            let version = api_version.strip_prefix(&format!("{GROUP}/")).unwrap_or_default();
            (text(&one["data"]["spec"]["a"]), version.to_owned())
        })
        .collect()
}

fn pairs(versions: &[(&str, &str)]) -> Vec<(String, String)> {
    versions.iter().map(|(a, version)| ((*a).to_owned(), (*version).to_owned())).collect()
}

#[test]
fn guest_gets_no_revision_of_another_api_version() {
    block_on(async {
        // Given a module that stays in its version, then a deleted object is as it was at first.
        let stage = stage_in_second_state(remembering()).await;
        assert_eq!(values_after_delete(&stage).await, ["1", "1", "1"]);

        // Given one that moves, then the present state moves too, and the first one stays.
        let stage = stage_in_second_state(remembering()).await;
        move_to(&stage, remembering(), "v2").await;
        assert_eq!(versions(&stage).await, pairs(&[("first", "v1"), ("second", "v2")]));

        // When an object is deleted, then the guest does not get the first state.
        assert_eq!(values_after_delete(&stage).await, ["1", "2", "1"]);
        let stored = [("first", "v1"), ("second", "v2"), ("third", "v2")];
        assert_eq!(versions(&stage).await, pairs(&stored));
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;
    });
}

#[test]
fn revision_whose_api_version_a_tenant_changes_is_deleted() {
    for version in [json!(format!("{GROUP}/v2")), Value::Null] {
        block_on(async {
            // Given a module that has moved to v2.
            let stage = stage_in_second_state(remembering()).await;
            move_to(&stage, remembering(), "v2").await;

            // When a tenant makes the revision of v1 one of v2.
            let revisions = stage.api().list(REVISIONS).await.unwrap();
            let first = revisions.iter().find(|one| one["data"]["spec"]["a"] == "first").unwrap();
            let path = format!("{REVISIONS}/{}", first["metadata"]["name"].as_str().unwrap());
            let change = json!({"metadata": {"annotations": {API_VERSION: version}}});
            stage.merge_at(&path, &change).await;
            stage.settle().await;

            // Then the host deletes it, and the guest does not get it.
            assert_eq!(versions(&stage).await, pairs(&[("second", "v2")]));
            assert_eq!(values_after_delete(&stage).await, ["1", "2", "1"]);
        });
    }
}

#[test]
fn revisions_follow_a_module_that_returns_to_an_earlier_api_version() {
    block_on(async {
        // Given a primary whose two states are stored in v1.
        let stage = stage_in_second_state(script()).await;

        // When the guest moves to v2 and back, then the present state follows by one apply.
        for version in ["v2", "v1"] {
            writes(&stage);
            move_to(&stage, script(), version).await;
            let stored = [("first", "v1"), ("second", version)];
            assert_eq!(versions(&stage).await, pairs(&stored));
            let mut of_revisions = writes(&stage);
            of_revisions.retain(|line| line.contains(" controllerrevisions/"));
            assert_eq!(of_revisions.len(), 2, "{of_revisions:?}");
            assert!(of_revisions.iter().all(|line| line.starts_with("apply")), "{of_revisions:?}");
        }
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}
