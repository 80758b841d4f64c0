//! What is wanted is passed on as it is.

use expect_test::expect_file;
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use serde_json::json;
use verbatim::{Deployment, Guest, Service, Verbatim};

#[test]
fn specs_are_passed_on_word_for_word() {
    let run = Scenario::<Guest>::of(json!({
        "metadata": {"name": "a"},
        "spec": {"deployment": {"replicas": 1, "odd": {"cpu": "1000m", "empty": {}}}},
    }))
    .run();
    run.is_complete().desires_objects(1).does_not_desire::<Service>("a");
    run.desires::<Deployment>("a")
        .with("/spec/odd/cpu", "1000m")
        .with("/spec/odd/empty", json!({}));
}

#[test]
fn the_crd_is_as_the_types_say() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Verbatim>());
}
