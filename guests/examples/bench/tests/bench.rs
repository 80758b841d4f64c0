//! What benchmarks rely on.

use bench_guest::{Bench, Guest, reconcile_json};
use expect_test::expect_file;
use innkeeper_sdk::kinds::{Deployment, Service};
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use serde_json::{Value, json};

fn given() -> Scenario<Guest> {
    Scenario::of(
        json!({ "metadata": { "name": "one" }, "spec": { "image": "web:1", "replicas": 2 } }),
    )
}

#[test]
fn a_bench_becomes_a_deployment_and_a_service_of_its_name() {
    let run = given().run();
    run.is_complete().desires_objects(2);
    run.desires::<Deployment>("one").with("/spec/replicas", 2);
    run.desires::<Service>("one").with("/spec/selector/app", "one");
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given().run().objects_text());
}

#[test]
fn the_status_counts_ready_pods() {
    given().run().status("/readyReplicas", 0);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "one" },
        "status": { "readyReplicas": 2 },
    });
    given().owns_ready(deployment).run().status("/readyReplicas", 2);
}

#[test]
fn reconcile_json_returns_the_objects_of_the_guest() {
    let scenario = given();
    let outcome: Value = serde_json::from_str(&reconcile_json(&scenario.document())).unwrap();
    let objects: Vec<Value> =
        outcome["objects"].as_array().unwrap().iter().map(|one| one["object"].clone()).collect();
    assert_eq!(objects, scenario.run().objects());
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Bench>());
}
