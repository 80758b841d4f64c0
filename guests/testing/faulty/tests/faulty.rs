//! The guest without a bug, and its definition.

use expect_test::expect_file;
use faulty::{Guest, Shop};
use innkeeper_sdk::kinds::{ConfigMap, Deployment, Service};
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::Scenario;
use serde_json::json;

#[test]
fn definition_is_the_one_of_the_types() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Shop>());
}

#[test]
fn shop_becomes_settings_deployment_service_and_pages() {
    let spec = json!({"image": "shop:1", "replicas": 2, "settings": {"color": "red"},
        "pages": ["about"]});
    let run = Scenario::<Guest>::of(json!({"metadata": {"name": "a"}, "spec": spec})).run();
    run.is_complete().desires_objects(4);
    run.desires::<ConfigMap>("a-settings").with("/data/color", "red");
    run.desires::<ConfigMap>("a-page-about0");
    run.desires::<Deployment>("a").with("/spec/replicas", 2);
    run.desires::<Service>("a");
}
