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
fn each_layer_is_a_config_map_and_one_outlives_the_stack() {
    let run = given(2, false).run();
    run.is_complete().desires_objects(3);
    run.desires::<ConfigMap>("app-1").with("/data/layer", "1");
    run.desires::<ConfigMap>("app-kept").policy(Policy::Orphan);
}

#[test]
fn a_stack_that_goes_is_taken_down_from_above() {
    let whole = given(2, false).run();
    let first = given(2, false).after(&whole).deleting().run();
    first.is_complete().does_not_desire::<ConfigMap>("app-1").desires::<ConfigMap>("app-0");
    let second = given(2, false).after(&first).deleting().run();
    second.is_complete().does_not_desire::<ConfigMap>("app-0");
    given(2, false).after(&second).deleting().run().is_finalized();
}

#[test]
fn the_last_layer_of_a_stuck_one_stays() {
    let whole = given(2, true).run();
    let first = given(2, true).after(&whole).deleting().run();
    let second = given(2, true).after(&first).deleting().run();
    second.is_complete().desires::<ConfigMap>("app-0");
}

#[test]
fn the_crd_is_as_the_types_say() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Stack>());
}
