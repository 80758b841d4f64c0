//! Objects that a guest only reads: the caches keep the fields that it names, and a revision that
//! names more finds them.

use innkeeper_lab::Content;
use serde_json::{Value, json};

use crate::support::{
    GROUP, Script, Setup, Stage, block_on, complete, config_map, definition, desired,
};

const EXTRA: &str = "/apis/test.example.dev/v1/namespaces/ns/extras/e";

/// The bytes of a field that the first revision does not read.
const BLOB_BYTES: u64 = 20_000;

/// An object of another client.
fn extra() -> Value {
    // Text that does not compress.
    let mut rng = fastrand::Rng::with_seed(18);
    let blob: String = (0..BLOB_BYTES).map(|_| rng.alphanumeric()).collect();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra",
        "metadata": {"name": "e", "namespace": "ns"},
        "spec": {"size": "small", "blob": blob, "end": "last word"}})
}

/// A guest that gets the object, of which its manifest names these fields, and desires a ConfigMap
/// for each text that it finds in it.
fn reading(fields: &Value) -> Script {
    let kind = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Extra"});
    let mut read = kind.clone();
    (read["plural"], read["scope"]) = (json!("extras"), json!("Namespaced"));
    let mut of_kind = kind;
    of_kind["fields"] = json!({"f:spec": fields});
    Script::new()
        .with("reads", json!([read]))
        .with("readFields", json!([of_kind]))
        .reads_with("get", ["test.example.dev/v1", "Extra", "ns", "e"])
        .when_read("last word", &desired(&[config_map("end", "seen")]))
        .when_read("large", &desired(&[config_map("large", "seen")]))
}

async fn stage(script: Script) -> Stage {
    let setup = Setup::new(script).may(&["get", "list", "watch"], GROUP, "extras");
    let stage = setup.object(definition("Extra", "extras")).object(extra()).start().await;
    stage.create("one", &complete(&desired(&[]))).await;
    stage.settle().await;
    stage.writes();
    stage
}

/// Changes fields of the object's spec; gives how often the guest ran after it.
async fn runs_for(stage: &Stage, spec: &Value) -> u64 {
    let before = stage.runs();
    stage.api().send("PATCH", EXTRA, Content::MergePatch, &json!({ "spec": spec })).await.unwrap();
    stage.settle().await;
    stage.runs() - before
}

fn cached_bytes(stage: &Stage) -> u64 {
    stage.cached_bytes("extras.test.example.dev")
}

#[test]
fn caches_keep_the_fields_of_the_manifest_of_kinds_that_guests_only_read() {
    block_on(async {
        let stage = stage(reading(&json!({"f:size": {}}))).await;
        let bytes = cached_bytes(&stage);
        assert!((1..BLOB_BYTES / 20).contains(&bytes), "{bytes} bytes");
        assert!(stage.config_map("end").await.is_none(), "the guest does not get the field");

        // Changes of other fields run no guest, and those of the field do.
        assert_eq!(runs_for(&stage, &json!({"blob": "short", "other": 1})).await, 0);
        assert!(runs_for(&stage, &json!({"size": "large"})).await > 0);
        assert!(stage.config_map("large").await.is_some());
    });
}

#[test]
fn revision_that_names_more_fields_finds_them_in_its_preview_and_after_it() {
    block_on(async {
        let stage = stage(reading(&json!({"f:size": {}}))).await;
        stage.push(&reading(&json!({"f:size": {}, "f:blob": {}, "f:end": {}}))).await;
        stage.until_decided().await;
        let preview = stage.module().await["status"]["preview"].clone();
        assert!(preview.to_string().contains("ConfigMap"), "it would make one: {preview}");
        stage.settle().await;
        assert!(stage.config_map("end").await.is_some());
        let bytes = cached_bytes(&stage);
        assert!(bytes > BLOB_BYTES / 2, "{bytes} bytes");

        // A revision that does not read the large field: the object loses it with its next change.
        stage.push(&reading(&json!({"f:size": {}, "f:end": {}}))).await;
        stage.until_decided().await;
        stage.pass(600).await;
        assert_eq!(runs_for(&stage, &json!({"other": 2})).await, 0);
        let bytes = cached_bytes(&stage);
        assert!((1..BLOB_BYTES / 20).contains(&bytes), "{bytes} bytes");
    });
}
