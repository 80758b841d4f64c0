//! What tests that merge into objects of other clients rely on.

use innkeeper_sdk::Policy;
use innkeeper_sdk::testing::Scenario;
use labels::{Guest, Namespace, PLAIN};
use serde_json::{Value, json};

fn given(annotations: &Value, labels: &Value) -> Scenario<Guest> {
    Scenario::of(json!({ "metadata": { "name": "web", "annotations": annotations } }))
        .parameters(json!({ "labels": labels }))
}

#[test]
fn the_labels_are_merged_into_the_namespace() {
    let run = given(&json!({}), &json!({"team": "a"})).run();
    run.is_complete().desires_objects(1);
    run.desires::<Namespace>("web").with("/metadata/labels/team", "a").policy(Policy::Merge);
}

#[test]
fn plain_namespace_gets_no_labels() {
    given(&json!({PLAIN: "true"}), &json!({"team": "a"})).run().is_complete().desires_objects(0);
    given(&json!({}), &json!({})).run().is_complete().desires_objects(0);
}
