//! What tests of finalizers rely on.

use expect_test::expect_file;
use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::testing::Scenario;
use innkeeper_sdk::{Policy, schema};
use serde_json::json;
use stack::{Guest, Stack};

fn given(layers: u32, stuck: bool) -> Scenario<Guest> {
    Scenario::of(json!({
        "metadata": { "name": "app" }, "spec": { "layers": layers, "stuck": stuck },
    }))
}

#[test]
fn each_layer_is_a_config_map_and_one_is_an_orphan() {
    let run = given(2, false).run();
    run.is_complete().desires_objects(3);
    run.desires::<ConfigMap>("app-1").with("/data/layer", "1");
    run.desires::<ConfigMap>("app-kept").policy(Policy::Orphan);
}

#[test]
fn deleted_stack_deletes_its_layers_from_the_last_to_the_first() {
    let whole = given(2, false).run();
    let first = given(2, false).after(&whole).deleting().run();
    first.is_complete().does_not_desire::<ConfigMap>("app-1").desires::<ConfigMap>("app-0");
    let second = given(2, false).after(&first).deleting().run();
    second.is_complete().does_not_desire::<ConfigMap>("app-0");
    given(2, false).after(&second).deleting().run().is_finalized();
}

#[test]
fn deleted_stack_keeps_one_layer_when_it_is_stuck() {
    let whole = given(2, true).run();
    let first = given(2, true).after(&whole).deleting().run();
    let second = given(2, true).after(&first).deleting().run();
    second.is_complete().desires::<ConfigMap>("app-0");
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Stack>());
}
