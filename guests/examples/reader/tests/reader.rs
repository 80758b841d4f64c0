//! What tests of RBAC rely on.

use expect_test::expect_file;
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use reader::{Guest, Reader};
use serde_json::json;

fn given(read: &serde_json::Value) -> Scenario<Guest> {
    Scenario::of(json!({
        "metadata": { "name": "r", "namespace": "n" }, "spec": { "reads": [read] },
    }))
    .with_object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n"}, "data": {"x": "y"}}))
}

#[test]
fn status_contains_the_whole_object_that_was_read() {
    let run = given(&json!({"namespace": "n", "name": "a"})).run();
    let seen = "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"y\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}";
    run.is_complete().status("/seen/0", seen);
    given(&json!({"namespace": "n"})).run().is_complete().status("/seen/0", seen);
}

#[test]
fn status_contains_the_error_of_a_failed_read() {
    let run = given(&json!({"namespace": "n", "name": "b", "secret": true})).run();
    run.is_complete().status("/seen/0", "the object does not exist");
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Reader>());
}
