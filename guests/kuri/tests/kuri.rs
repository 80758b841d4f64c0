//! What users of kuri can rely on.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{Job, Pod};
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use innkeeper_sdk::{Policy, Reconciler as _, read, schema};
use kuri::{Guest, Kuri, Operation, Parameters};
use serde_json::{Value, from_value, json};

const JOB: &str = "chestnut";
const POD: &str = "chestnut-x7k2p";

fn sample() -> Value {
    json!({
        "metadata": { "name": JOB, "namespace": "demo" },
        "spec": { "image": "busybox:1", "command": ["sleep", "60"] },
    })
}

fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary)
}

/// A pod as the Job controller makes it.
fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": POD, "labels": { "batch.kubernetes.io/job-name": JOB } },
    })
}

/// A Job that names the sample as its owner, and that the host has never applied.
fn job_of_the_original() -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": JOB } })
}

/// The sample's Job runs, with a pod.
fn running() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(sample());
    cluster.settle();
    cluster.add(pod());
    cluster
}

#[test]
fn a_kuri_becomes_a_job_of_its_name() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(1).status("/phase", "setup");
    run.desires::<Job>(JOB)
        .with("/spec/template/spec/containers/0/image", "busybox:1")
        .with("/spec/template/spec/containers/0/command", json!(["sleep", "60"]))
        .with("/spec/template/spec/restartPolicy", "Never");
}

#[test]
fn objects_equal_the_golden_file() {
    expect_file!["golden/objects.json"].assert_eq(&given(sample()).run().objects_text());
}

#[test]
fn kuri_runs_the_default_when_it_has_no_spec() {
    given(json!({ "metadata": {} }))
        .run()
        .desires::<Job>("example")
        .with("/spec/template/spec/containers/0/image", "busybox")
        .with("/spec/template/spec/containers/0/command", json!(["echo", "kuri"]));
}

#[test]
fn job_is_recreated_when_an_immutable_field_changes() {
    given(sample()).run().desires::<Job>(JOB).policy(Policy::RecreateWhenImmutable);
}

#[test]
fn the_phase_is_setup_until_the_job_has_ended() {
    let mut cluster = running();
    // By the rules of kstatus a Job is ready when it starts; a Kuri is ready when it succeeded.
    cluster.becomes_ready::<Job>(JOB);
    cluster.settle().status("/phase", "setup").condition("Ready", False, "InProgress");

    cluster.change::<Job>(JOB, |job| {
        job["status"] = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    });
    cluster.settle().status("/phase", "done").condition("Ready", True, "Succeeded");

    cluster.change::<Job>(JOB, |job| {
        job["status"] = json!({
            "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }],
        });
    });
    cluster
        .settle()
        .status("/phase", "failed")
        .condition("Ready", False, "Failed")
        .condition_says("Ready", "BackoffLimitExceeded");
}

#[test]
fn a_deleted_kuri_goes_when_the_job_and_its_pods_are_gone() {
    let mut cluster = running();
    cluster.delete();
    cluster
        .settle()
        .is_complete()
        .is_not_finalized()
        .does_not_desire::<Job>(JOB)
        .status("/phase", "cleanup")
        .condition("Ready", False, "CleaningUp");
    assert!(cluster.has_primary() && !cluster.has::<Job>(JOB), "the pod still exists");

    cluster.remove::<Pod>(POD);
    cluster.settle().is_finalized().status("/phase", "clean");
    assert!(!cluster.has_primary());
}

#[test]
fn deleted_kuri_is_finalized_at_once_without_the_operation_cleanup() {
    let mut cluster = running();
    cluster.parameters(json!({ "operations": ["deploy"] })).delete();
    cluster.settle().is_finalized().keeps::<Job>(JOB);
}

#[test]
fn without_the_operation_deploy_the_job_goes_and_its_pods() {
    let mut cluster = running();
    cluster.parameters(json!({ "operations": ["cleanup"] }));
    cluster.settle().desires_objects(0).condition("Ready", False, "CleaningUp");
    assert!(!cluster.has::<Job>(JOB));

    cluster.remove::<Pod>(POD);
    cluster.settle().status("/phase", "clean").condition("Ready", True, "Clean");
}

#[test]
fn deleted_kuri_is_finalized_when_the_job_belongs_to_another_client() {
    let others = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": JOB } });
    given(sample()).with_object(others).with_object(pod()).deleting().run().is_finalized();
}

/// The garbage collector deletes the Job and its pods after the Kuri.
#[test]
fn deleted_kuri_is_finalized_when_its_job_is_one_of_the_original_operator() {
    let run = given(sample()).owns_ready(job_of_the_original()).with_object(pod()).deleting().run();
    run.is_finalized().does_not_desire::<Job>(JOB);
    let mut deleted = job_of_the_original();
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    given(sample()).owns_ready(deleted).deleting().run().is_not_finalized();
}

#[test]
fn ready_says_what_to_do_when_a_job_of_the_original_operator_stays_without_the_operation_deploy() {
    given(sample())
        .parameters(json!({ "operations": ["cleanup"] }))
        .owns_ready(job_of_the_original())
        .run()
        .desires_objects(0)
        .condition("Ready", False, "JobNotApplied")
        .condition_says("Ready", "kubectl delete job chestnut");
}

#[test]
fn deleted_kuri_is_not_finalized_when_pods_cannot_be_read() {
    let run = given(sample()).deny_reads::<read::Pod>().deleting().run();
    run.failed_because("Unreadable").is_not_finalized().condition("Ready", False, "Unreadable");
    assert!(!run.failure().unwrap().permanent);
}

#[test]
fn kuri_is_refused_and_can_be_deleted_when_its_name_is_too_long() {
    let kuri = json!({ "metadata": { "name": "a".repeat(64) } });
    given(kuri.clone()).run().failed_because("NameTooLong").desires_objects(0);
    given(kuri).deleting().run().is_finalized();
}

#[test]
fn operations_are_deploy_and_cleanup_when_left_out() {
    for parameters in [json!({}), json!({ "operations": ["deploy", "cleanup"] })] {
        let parameters: Parameters = from_value(parameters).unwrap();
        assert!(parameters.has(Operation::Deploy) && parameters.has(Operation::Cleanup));
    }
    assert_eq!(
        Parameters::schema()["properties"]["operations"]["default"],
        json!(["deploy", "cleanup"])
    );
}

#[test]
fn parameters_that_do_not_fit_are_refused_and_say_why() {
    for (parameters, why) in [
        (json!({ "operations": ["destroy"] }), "unknown variant `destroy`"),
        (json!({ "operations": "deploy" }), "expected a sequence"),
        (json!({ "operation": [] }), "unknown field `operation`"),
    ] {
        given(sample())
            .parameters(parameters)
            .run()
            .failed_because("BadParameters")
            .condition_says("Ready", why);
    }
}

#[test]
fn resync_period_is_30_seconds() {
    assert_eq!(Guest::describe().resync_seconds, Some(30));
}

#[test]
fn crd_has_the_names_and_fields_of_the_original() {
    let crd = schema::crd::<Kuri>();
    assert_eq!(crd["spec"]["group"], "kuri.example.com");
    assert_eq!(crd["spec"]["names"]["kind"], "Kuri");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    assert_eq!(version["subresources"], json!({ "status": {} }));
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(schema.pointer("/status/properties/phase/type"), Some(&json!("string")));
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<Kuri>());
}

#[test]
fn sample_manifest_is_a_kuri() {
    let text = include_str!("../../../deploy/samples/kuri.yaml");
    for line in ["apiVersion: kuri.example.com/v1alpha1", "kind: Kuri", "  command: [echo, kuri]"] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}
