//! What a user of @name@ may rely on. `cargo test` runs it natively: no wasm, no cluster.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::schema;
use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::testing::Scenario;

use @library@::Guest;

/// What a user has written.
fn given(text: &str) -> Scenario<Guest> {
    Scenario::of(json!({ "metadata": { "name": "first" }, "spec": { "text": text } }))
}

#[test]
fn its_text_stands_in_a_config_map_of_its_name() {
    let run = given("Good day").run();
    run.is_complete()
        .desires_objects(1)
        .status("/configMap", "first");
    run.desires::<ConfigMap>("first")
        .with("/data/text", "Good day");
}

#[test]
fn it_is_ready_when_the_config_map_is_there() {
    let first = given("Good day").run();
    first.condition("Ready", False, "InProgress");
    given("Good day")
        .after(&first)
        .run()
        .condition("Ready", True, "AllReady");
}

/// After a change of the types: `UPDATE_EXPECT=1 cargo test` writes crd.json anew.
#[test]
fn the_crd_is_as_the_types_say() {
    expect_file![concat!(env!("CARGO_MANIFEST_DIR"), "/crd.json")]
        .assert_eq(&schema::crd_text::<@library@::@kind@>());
}
