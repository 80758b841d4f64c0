//! What users of kabocha can rely on.

use expect_test::expect_file;
use imo::Imo;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use innkeeper_sdk::{Reconciler as _, Reference, Resource, Unapplied, schema};
use kabocha::{FINALIZER, Guest, Kabocha};
use kuri::Kuri;
use serde_json::{Value, json};

/// A parent of one child of each kind.
fn sample() -> Value {
    json!({
        "metadata": { "name": "patch", "namespace": "demo" },
        "spec": {
            "imos": [{ "name": "red", "size": 2 }],
            "kuris": [{ "name": "harvest", "image": "busybox:1", "command": ["echo", "done"] }],
            "kabochas": [{ "name": "small", "imos": [{ "name": "purple", "size": 1 }] }],
        },
    })
}

fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary)
}

fn settled() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(sample());
    cluster.settle();
    cluster
}

/// Sets the condition `Ready` of a child, as its own module would.
fn reports<K: Resource>(cluster: &mut FakeCluster<Guest>, name: &str, status: &str, message: &str) {
    cluster.change::<K>(name, |child| {
        child["status"] = json!({
            "conditions": [
                { "type": "Ready", "status": status, "reason": "Because", "message": message },
            ],
        });
    });
}

#[test]
fn a_kabocha_becomes_its_children() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(3);
    run.desires::<Imo>("patch-red").with("/spec", json!({ "size": 2 }));
    run.desires::<Kuri>("patch-harvest")
        .with("/spec", json!({ "image": "busybox:1", "command": ["echo", "done"] }));
    run.desires::<Kabocha>("patch-small")
        .with("/spec", json!({ "imos": [{ "name": "purple", "size": 1 }] }));
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given(sample()).run().objects_text());
}

#[test]
fn kabocha_is_ready_without_children() {
    for kabocha in [json!({ "metadata": {} }), json!({ "spec": {} })] {
        given(kabocha)
            .run()
            .desires_objects(0)
            .status("/ready", "0/0")
            .status("/phase", "ready")
            .condition("Ready", True, "AllReady");
    }
}

#[test]
fn a_childs_size_is_a_number_from_end_to_end() {
    let run = given(json!({ "spec": { "imos": [{ "name": "red", "size": "2" }] } })).run();
    run.failed_because("UnreadablePrimary");
}

#[test]
fn the_childrens_readiness_is_reported_upwards() {
    let mut cluster = settled();
    // Without the condition `Ready` a child is not ready, although it is by the rules of kstatus.
    cluster
        .becomes_ready::<Imo>("patch-red")
        .settle()
        .status("/phase", "setup")
        .status("/ready", "0/3")
        .condition("Ready", False, "ChildNotReady")
        .condition_says(
            "Ready",
            "Imo patch-red: its controller has not reported the condition Ready",
        );

    reports::<Imo>(&mut cluster, "patch-red", "True", "");
    reports::<Kuri>(&mut cluster, "patch-harvest", "False", "Job patch-harvest has not ended yet");
    cluster
        .settle()
        .status("/ready", "1/3")
        .status("/children/1/message", "Job patch-harvest has not ended yet")
        .condition_says("Ready", "Kuri patch-harvest: Job patch-harvest has not ended yet");

    reports::<Kuri>(&mut cluster, "patch-harvest", "True", "");
    reports::<Kabocha>(&mut cluster, "patch-small", "True", "");
    cluster
        .settle()
        .status("/phase", "ready")
        .status("/ready", "3/3")
        .condition("Ready", True, "AllReady");

    reports::<Imo>(&mut cluster, "patch-red", "False", "1 of 2 replicas are ready");
    cluster.settle().status("/phase", "setup").condition_says("Ready", "1 of 2 replicas");
}

#[test]
fn child_is_deleted_when_it_is_removed_from_the_spec() {
    let mut cluster = settled();
    cluster.edit(|kabocha| kabocha["spec"]["kuris"] = json!([]));
    cluster.settle().status("/ready", "0/2");
    assert!(!cluster.has::<Kuri>("patch-harvest") && cluster.has::<Imo>("patch-red"));
}

#[test]
fn kabocha_is_not_ready_while_the_kind_of_a_child_is_not_served() {
    let run =
        given(json!({ "spec": { "kuris": [{ "name": "harvest" }] } })).without::<Kuri>().run();
    run.is_complete()
        .condition("Ready", False, "ChildNotReady")
        .condition_says("Ready", "does not serve Kuri");
    run.desires::<Kuri>("example-harvest");
}

#[test]
fn a_deleted_kabocha_takes_its_children_down_in_order() {
    let mut cluster = settled();
    cluster.delete();

    let (run, _) = cluster.round();
    run.is_complete()
        .is_not_finalized()
        .desires_objects(0)
        .keeps::<Kuri>("patch-harvest")
        .keeps::<Imo>("patch-red")
        .does_not_keep::<Kabocha>("patch-small")
        .status("/phase", "teardown")
        .condition_says("Ready", "waiting for the deletion of Kabocha patch-small");

    let (run, _) = cluster.round();
    run.is_not_finalized().does_not_keep::<Kuri>("patch-harvest").keeps::<Imo>("patch-red");

    let (run, _) = cluster.round();
    run.is_not_finalized().does_not_keep::<Imo>("patch-red");

    cluster.settle().is_finalized();
    assert!(!cluster.has_primary());
}

#[test]
fn teardown_waits_for_a_child_with_a_finalizer() {
    let kuri = json!({
        "apiVersion": Kuri::API_VERSION, "kind": "Kuri",
        "metadata": {
            "name": "patch-harvest", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["innkeeper.dev/kuri"],
        },
    });
    let imo = json!({
        "apiVersion": Imo::API_VERSION, "kind": "Imo", "metadata": { "name": "patch-red" },
    });
    given(sample())
        .owns_ready(kuri)
        .owns_ready(imo)
        .deleting()
        .run()
        .is_not_finalized()
        .keeps::<Imo>("patch-red")
        .condition_says("Ready", "waiting for the deletion of Kuri patch-harvest");
}

#[test]
fn child_is_not_recreated_when_another_client_deletes_it_during_teardown() {
    let mut cluster = settled();
    cluster.delete();
    cluster.remove::<Imo>("patch-red").settle().is_finalized();
}

#[test]
fn deleted_kabocha_is_finalized_at_once_without_children() {
    given(json!({ "spec": {} })).deleting().run().is_finalized();
}

#[test]
fn kabocha_is_refused_when_the_name_of_a_kuri_would_be_too_long() {
    let long = "a".repeat(60);
    let kuris = json!([{ "name": "harvest" }]);
    for spec in [
        json!({ "imos": [{ "name": "red" }], "kuris": kuris }),
        json!({ "kabochas": [{ "name": "small", "kuris": kuris }] }),
    ] {
        let kabocha = json!({ "metadata": { "name": long }, "spec": spec });
        given(kabocha.clone())
            .run()
            .failed_because("NameTooLong")
            .desires_objects(0)
            .condition_says("Ready", "too long");
        given(kabocha).deleting().run().is_finalized();
    }
}

#[test]
fn ready_is_false_when_an_object_could_not_be_applied() {
    let conflict = Unapplied {
        reference: Reference {
            api_version: Imo::API_VERSION.to_owned(),
            kind: "Imo".to_owned(),
            namespace: "demo".to_owned(),
            name: "patch-red".to_owned(),
        },
        reason: "Conflict".to_owned(),
        message: "it belongs to Kabocha demo/other".to_owned(),
    };
    given(sample()).unapplied(conflict).run().condition("Ready", False, "Conflict");
}

/// The sample of the original operator.
fn original() -> Value {
    json!({ "metadata": { "name": "patch" }, "spec": { "dummy": "Imo, Kuri and Kabocha" } })
}

#[test]
fn status_is_the_last_phase_of_the_parameter_and_nothing_else_without_children() {
    for (parameters, phase) in [
        (json!({ "phase": ["setup"] }), "setup"),
        (json!({ "phase": ["setup", "harvest"], "operations": ["deploy"], "size": 3 }), "harvest"),
    ] {
        given(original())
            .parameters(parameters)
            .run()
            .is_complete()
            .desires_objects(0)
            .status("", json!({ "phase": phase }))
            .has_no_conditions();
    }
}

#[test]
fn readiness_of_children_is_reported_also_when_the_module_sets_a_phase() {
    let mut parent = sample();
    parent["spec"]["kabochas"] = json!([{ "name": "empty" }]);
    let mut cluster = FakeCluster::<Guest>::with(parent);
    cluster.parameters(json!({ "phase": ["setup"] }));
    // The smaller Kabocha has no children: it never reports the condition Ready.
    cluster.settle().status("/ready", "1/3").condition("Ready", False, "ChildNotReady");
    reports::<Imo>(&mut cluster, "patch-red", "True", "");
    reports::<Kuri>(&mut cluster, "patch-harvest", "True", "");
    cluster.settle().status("/phase", "ready").condition("Ready", True, "AllReady");
}

#[test]
fn phase_is_a_list_of_words_and_other_parameters_are_accepted() {
    let schema = Guest::describe().parameters_schema.unwrap().value();
    assert_eq!(schema["properties"]["phase"]["type"], "array");
    assert_eq!(schema["properties"]["phase"]["items"]["type"], "string");
    assert_eq!(schema.get("additionalProperties"), None, "any other variable is accepted");
    given(original())
        .parameters(json!({ "phase": "setup" }))
        .run()
        .failed_because("BadParameters")
        .condition_says("Ready", "spec.parameters are invalid");
}

#[test]
fn original_sample_is_the_manifest_of_the_tests() {
    let text = include_str!("../../../deploy/samples/kabocha-original.yaml");
    for line in ["kind: Kabocha", "spec:", "  dummy: Imo, Kuri and Kabocha"] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}

#[test]
fn module_sample_has_the_settings_of_the_source() {
    let text = include_str!("../../../deploy/samples/module-kabocha.yaml");
    for line in ["  resyncPeriod: 90s", "  manageStatus: false", "    phase: [setup]"] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}

#[test]
fn the_finalizer_is_the_originals() {
    let manifest = Guest::describe();
    assert_eq!(manifest.finalizer.as_deref(), Some(FINALIZER));
    assert_eq!(FINALIZER, "finalizer.kabocha.example.com");
    assert_eq!(manifest.resync_seconds, Some(90));
}

#[test]
fn crd_has_the_names_and_fields_of_the_original() {
    let crd = schema::crd::<Kabocha>();
    assert_eq!(crd["spec"]["group"], "kabocha.example.com");
    assert_eq!(crd["spec"]["names"]["kind"], "Kabocha");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"], json!({ "status": {} }));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    for (field, type_) in
        [("/spec/properties/dummy/type", "string"), ("/status/properties/phase/type", "string")]
    {
        assert_eq!(schema.pointer(field), Some(&json!(type_)), "{field}");
    }
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Kabocha>());
}

#[test]
fn sample_manifest_is_a_kabocha() {
    let text = include_str!("../../../deploy/samples/kabocha.yaml");
    for line in ["apiVersion: kabocha.example.com/v1alpha1", "kind: Kabocha", "    - name: harvest"]
    {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}
