//! What tests with arbitrary specs rely on.

use expect_test::expect_file;
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use serde_json::json;
use verbatim::{Deployment, Guest, Service, Verbatim};

#[test]
fn desired_objects_have_exactly_the_specs_of_the_primary() {
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
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Verbatim>());
}
