//! What tests of pruning rely on.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use serde_json::json;
use settings::{Guest, Settings};

fn given(names: &[&str]) -> Scenario<Guest> {
    Scenario::of(
        json!({ "metadata": { "name": "app" }, "spec": { "names": names, "text": "hello" } }),
    )
}

#[test]
fn each_name_has_a_config_map() {
    let run = given(&["a", "b"]).run();
    run.is_complete().desires_objects(2).condition("Ready", False, "InProgress");
    run.desires::<ConfigMap>("app-a").with("/data/text", "hello");
    run.desires::<ConfigMap>("app-b").with("/metadata/labels/settings", "app");
}

#[test]
fn config_map_is_not_desired_when_its_name_is_removed() {
    let first = given(&["a", "b"]).run();
    let second = given(&["a"]).after(&first).run();
    second
        .is_complete()
        .desires_objects(1)
        .does_not_desire::<ConfigMap>("app-b")
        .status("/configMaps", 2);
    second.condition("Ready", True, "AllReady");
}

#[test]
fn settings_without_names_desires_nothing() {
    given(&[]).run().is_complete().desires_objects(0);
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Settings>());
}
