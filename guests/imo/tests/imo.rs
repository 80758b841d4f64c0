//! What users of imo can rely on.

use expect_test::expect_file;
use imo::{Guest, Imo};
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::Deployment;
use innkeeper_sdk::schema;
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use serde_json::{Value, json};

fn sample() -> Value {
    json!({ "metadata": { "name": "satsuma", "namespace": "demo" }, "spec": { "size": 3 } })
}

fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary)
}

#[test]
fn an_imo_becomes_a_deployment_of_its_name() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(1);
    run.desires::<Deployment>("satsuma")
        .with("/spec/selector/matchLabels", json!({ "app": "imo" }))
        .with("/spec/template/metadata/labels", json!({ "app": "imo" }))
        .with("/spec/template/spec/containers/0/image", "nginx")
        .with("/spec/template/spec/containers/0/ports/0/containerPort", 80);
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given(sample()).run().objects_text());
}

#[test]
fn the_size_is_a_number_from_end_to_end() {
    for size in [0, 1, 7] {
        let imo = json!({ "spec": { "size": size } });
        given(imo).run().desires::<Deployment>("example").with("/spec/replicas", size);
    }
    let run = given(json!({ "spec": { "size": "3" } })).run();
    let message = &run.failed_because("UnreadablePrimary").failure().unwrap().message;
    assert!(message.contains("expected i32"), "{message}");
}

#[test]
fn size_is_1_when_the_spec_has_none() {
    for imo in [json!({ "metadata": {} }), json!({ "spec": {} })] {
        given(imo).run().desires::<Deployment>("example").with("/spec/replicas", 1);
    }
}

#[test]
fn the_phase_is_setup_until_the_pods_are_ready() {
    let mut cluster = FakeCluster::<Guest>::with(sample());
    cluster.settle().status("/phase", "setup").condition("Ready", False, "InProgress");

    cluster
        .change::<Deployment>("satsuma", |one| {
            one["status"] = json!({ "replicas": 3, "readyReplicas": 3 });
        })
        .becomes_ready::<Deployment>("satsuma");
    cluster
        .settle()
        .status("/phase", "ready")
        .status("/readyReplicas", 3)
        .condition("Ready", True, "AllReady");

    cluster.becomes_unready::<Deployment>("satsuma", "2 of 3 replicas are ready");
    cluster.settle().status("/phase", "setup").condition_says("Ready", "2 of 3");
}

#[test]
fn crd_has_the_names_and_fields_of_the_original() {
    let crd = schema::crd::<Imo>();
    assert_eq!(crd["spec"]["group"], "imo.example.com");
    assert_eq!(crd["spec"]["names"]["kind"], "Imo");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"], json!({ "status": {} }));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    for (field, type_) in
        [("/spec/properties/size/type", "integer"), ("/status/properties/phase/type", "string")]
    {
        assert_eq!(schema.pointer(field), Some(&json!(type_)), "{field}");
    }
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Imo>());
}

#[test]
fn sample_manifest_is_an_imo() {
    let text = include_str!("../../../deploy/samples/imo.yaml");
    for line in ["apiVersion: imo.example.com/v1alpha1", "kind: Imo", "  size: 3"] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}

#[test]
fn module_sample_has_the_period_of_the_source() {
    let text = include_str!("../../../deploy/samples/module-imo.yaml");
    assert!(text.lines().any(|found| found == "  resyncPeriod: 30s"), "{text}");
}
