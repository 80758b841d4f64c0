//! What users of @name@ may rely on. `cargo test` runs the tests natively: no wasm, no cluster.

use innkeeper_sdk::Policy;
use innkeeper_sdk::serde_json::{Value, json};
use innkeeper_sdk::testing::Scenario;

use @library@::{ANNOTATION, Guest, LABEL, @kind@};

/// A scenario with a `@kind@` that has these annotations.
fn given(annotations: &Value) -> Scenario<Guest> {
    Scenario::of(json!({ "metadata": { "name": "first", "annotations": annotations } }))
}

#[test]
fn label_has_the_value_of_the_annotation() {
    let run = given(&json!({ ANNOTATION: "web" })).run();
    run.is_complete().desires_objects(1);
    run.desires::<@kind@>("first")
        .with(&format!("/metadata/labels/{LABEL}"), "web")
        .policy(Policy::Merge);
}

#[test]
fn run_fails_when_the_annotation_is_not_the_value_of_a_label() {
    given(&json!({ ANNOTATION: "not a label" }))
        .run()
        .failed_because("InvalidAnnotation");
}

#[test]
fn object_without_the_annotation_is_not_touched() {
    given(&json!({})).run().is_complete().desires_objects(0);
}
