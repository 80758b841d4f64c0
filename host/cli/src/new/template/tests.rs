//! What users of @name@ may rely on. `cargo test` runs the tests natively: no wasm, no cluster.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::schema;
use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::testing::Scenario;

use @library@::Guest;

/// A scenario with a `@kind@` that a user wrote.
fn given(text: &str) -> Scenario<Guest> {
@namespaced@    Scenario::of(json!({ "metadata": { "name": "first" }, "spec": { "text": text } }))
@cluster@    let spec = json!({ "text": text, "namespace": "default" });
@cluster@    Scenario::of(json!({ "metadata": { "name": "first" }, "spec": spec }))
}

#[test]
fn config_map_has_the_name_and_the_text() {
    let run = given("Good day").run();
    run.is_complete()
        .desires_objects(1)
        .status("/configMap", "first");
    run.desires::<ConfigMap>("first")
        .with("/data/text", "Good day");
}

#[test]
fn ready_is_true_when_the_config_map_exists() {
    let first = given("Good day").run();
    first.condition("Ready", False, "InProgress");
    given("Good day")
        .after(&first)
        .run()
        .condition("Ready", True, "AllReady");
}

/// After a change of the types, `UPDATE_EXPECT=1 cargo test` updates crd.json.
#[test]
fn crd_matches_the_types() {
    expect_file![concat!(env!("CARGO_MANIFEST_DIR"), "/crd.json")]
        .assert_eq(&schema::crd_text::<@library@::@kind@>());
}
