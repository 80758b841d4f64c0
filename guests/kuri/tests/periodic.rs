//! What users of a periodic Kuri can rely on.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::Time;
use innkeeper_sdk::kinds::{Job, Pod};
use innkeeper_sdk::testing::{FakeCluster, Run, Scenario};
use kuri::Guest;
use serde_json::{Value, json};

const JOB: &str = "chestnut";
const POD: &str = "chestnut-x7k2p";
/// 2026-01-01T00:00:00Z.
const START: u32 = 1_767_225_600;

fn sample() -> Value {
    json!({
        "metadata": { "name": JOB, "namespace": "demo" },
        "spec": { "image": "busybox:1", "command": ["echo", "one"], "period": "90s" },
    })
}

fn at(seconds: u32) -> String {
    Time::from_ms(f64::from(START + seconds) * 1000.0).to_string()
}

/// A cluster at the start, where the guest has created the Job.
fn started() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(sample());
    cluster.at_ms(f64::from(START) * 1000.0);
    cluster.settle();
    cluster
}

/// Runs the guest at this time, in seconds after the start.
fn settle_at(cluster: &mut FakeCluster<Guest>, seconds: u32) -> Run {
    cluster.at_ms(f64::from(START + seconds) * 1000.0).settle()
}

/// The Job ends, as its controller would report it.
fn ends(cluster: &mut FakeCluster<Guest>, seconds: u32, type_: &str) {
    let time = at(seconds);
    cluster.change::<Job>(JOB, |job| {
        let condition = json!({
            "type": type_, "status": "True", "lastTransitionTime": time,
            "reason": "BackoffLimitExceeded",
        });
        job["status"] = json!({ "conditions": [condition] });
    });
}

/// A pod as the Job controller makes it.
fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": POD, "labels": { "batch.kubernetes.io/job-name": JOB } },
    })
}

fn created(cluster: &FakeCluster<Guest>) -> &Value {
    &cluster.object::<Job>(JOB)["metadata"]["creationTimestamp"]
}

#[test]
fn objects_equal_the_golden_file() {
    let run = Scenario::<Guest>::of(sample()).run();
    expect_file!["golden/periodic.json"].assert_eq(&run.objects_text());
}

#[test]
fn job_runs_again_when_it_has_ended_and_the_period_has_passed() {
    let mut cluster = started();
    settle_at(&mut cluster, 1)
        .status("/phase", "setup")
        .status("/runs", 0)
        .status("/nextRun", at(90))
        .condition("Ready", False, "InProgress")
        .condition("Periodic", True, "Scheduled")
        .requeues_after(89);

    ends(&mut cluster, 5, "Complete");
    settle_at(&mut cluster, 6)
        .status("/phase", "done")
        .status("/runs", 1)
        .status("/history", json!([{ "start": at(0), "end": at(5), "result": "Succeeded" }]))
        .condition("Ready", True, "Succeeded")
        .requeues_after(84);
    settle_at(&mut cluster, 89).status("/phase", "done").requeues_after(1);

    settle_at(&mut cluster, 90)
        .status("/phase", "setup")
        .status("/runs", 1)
        .status("/nextRun", at(180))
        .condition("Ready", True, "Succeeded")
        .requeues_after(90);
    assert_eq!(*created(&cluster), at(90));
}

#[test]
fn next_run_waits_until_the_pods_of_the_last_one_are_deleted() {
    let mut cluster = started();
    cluster.add(pod());
    ends(&mut cluster, 5, "Complete");
    settle_at(&mut cluster, 6);
    let run = settle_at(&mut cluster, 90);
    run.status("/phase", "cleanup")
        .does_not_desire::<Job>(JOB)
        .condition("Ready", True, "Succeeded")
        .condition("Periodic", True, "CleaningUp")
        .condition_says("Periodic", POD);
    assert!(!cluster.has::<Job>(JOB));
    settle_at(&mut cluster, 500).does_not_desire::<Job>(JOB);

    cluster.remove::<Pod>(POD);
    settle_at(&mut cluster, 501).status("/phase", "setup").status("/nextRun", at(591));
    assert_eq!(*created(&cluster), at(501));
}

#[test]
fn next_run_waits_while_the_job_is_being_deleted() {
    let mut cluster = started();
    cluster.change::<Job>(JOB, |job| job["metadata"]["deletionTimestamp"] = json!(at(3)));
    let (run, _) = cluster.round();
    run.does_not_desire::<Job>(JOB).status("/phase", "cleanup").condition_says("Periodic", "Job");
}

#[test]
fn run_longer_than_the_period_is_reported_and_the_next_one_follows_its_end() {
    let mut cluster = started();
    let run = settle_at(&mut cluster, 200);
    run.status("/phase", "setup")
        .condition("Periodic", False, "RunExceedsPeriod")
        .condition_says("Periodic", "spec.deadlineSeconds")
        .desires::<Job>(JOB);
    assert_eq!(*created(&cluster), at(0));

    // First the status has to show the run, then the Job goes.
    ends(&mut cluster, 230, "Complete");
    settle_at(&mut cluster, 231).status("/runs", 1).requeues_after(1).desires::<Job>(JOB);
    settle_at(&mut cluster, 232).status("/phase", "setup").condition("Periodic", True, "Scheduled");
    assert_eq!(*created(&cluster), at(232));
}

#[test]
fn job_runs_once_after_an_outage_of_many_periods() {
    let mut cluster = started();
    settle_at(&mut cluster, 1);
    ends(&mut cluster, 5, "Complete");
    settle_at(&mut cluster, 1000).status("/runs", 1).requeues_after(1);
    settle_at(&mut cluster, 1001).status("/nextRun", at(1091));
    ends(&mut cluster, 1003, "Complete");
    settle_at(&mut cluster, 1090).status("/runs", 2).desires::<Job>(JOB);
    assert_eq!(*created(&cluster), at(1001));
}

#[test]
fn failed_run_counts_and_ready_stays_false_until_a_run_succeeds() {
    let mut cluster = started();
    ends(&mut cluster, 5, "Failed");
    let run = settle_at(&mut cluster, 6);
    run.status("/phase", "failed")
        .status("/history/0/result", "Failed")
        .condition("Ready", False, "Failed")
        .condition_says("Ready", "BackoffLimitExceeded");
    cluster.add(pod());
    settle_at(&mut cluster, 90).condition("Ready", False, "Failed");
    cluster.remove::<Pod>(POD);
    settle_at(&mut cluster, 91)
        .status("/phase", "setup")
        .condition("Ready", False, "Failed")
        .condition_says("Ready", "BackoffLimitExceeded");
    ends(&mut cluster, 95, "Complete");
    settle_at(&mut cluster, 96).condition("Ready", True, "Succeeded");
}

#[test]
fn history_has_the_last_five_runs_newest_first() {
    let mut cluster = started();
    for run in 0..7 {
        ends(&mut cluster, run * 90 + 5, "Complete");
        settle_at(&mut cluster, run * 90 + 6);
        settle_at(&mut cluster, run * 90 + 90);
    }
    let run = settle_at(&mut cluster, 631);
    run.status("/runs", 7).status("/history/0/start", at(540)).status("/history/4/start", at(180));
    let desired = run.status("/history/0/end", at(545));
    desired.desires::<Job>(JOB);
    let list =
        json!([540, 450, 360, 270, 180].map(
            |start| json!({ "start": at(start), "end": at(start + 5), "result": "Succeeded" })
        ));
    run.status("/history", list);
}

#[test]
fn changed_command_is_that_of_the_next_run() {
    let mut cluster = started();
    cluster.edit(|kuri| kuri["spec"]["command"] = json!(["echo", "two"]));
    let command = "/spec/template/spec/containers/0/command";
    settle_at(&mut cluster, 2).desires::<Job>(JOB).with(command, json!(["echo", "one"]));
    ends(&mut cluster, 5, "Complete");
    settle_at(&mut cluster, 6);
    settle_at(&mut cluster, 90).desires::<Job>(JOB).with(command, json!(["echo", "two"]));
}

#[test]
fn deadline_applies_to_the_run_that_has_none() {
    let mut cluster = started();
    settle_at(&mut cluster, 2).desires::<Job>(JOB).without("/spec/activeDeadlineSeconds");
    cluster.edit(|kuri| kuri["spec"]["deadlineSeconds"] = json!(60));
    settle_at(&mut cluster, 3).desires::<Job>(JOB).with("/spec/activeDeadlineSeconds", 60);
}

#[test]
fn deadline_of_the_module_applies_when_the_kuri_sets_none() {
    let mut kuri = sample();
    kuri["spec"]["period"] = Value::Null;
    let run = |kuri: &Value| {
        let parameters = json!({ "deadlineSeconds": 30 });
        Scenario::<Guest>::of(kuri.clone()).parameters(parameters).run()
    };
    run(&kuri).desires::<Job>(JOB).with("/spec/activeDeadlineSeconds", 30);
    kuri["spec"]["deadlineSeconds"] = json!(7);
    run(&kuri).desires::<Job>(JOB).with("/spec/activeDeadlineSeconds", 7);
    kuri["spec"]["deadlineSeconds"] = json!(0);
    run(&kuri).failed_because("InvalidDeadline").condition_says("Ready", "at least 1");
}

#[test]
fn period_of_the_module_applies_when_the_kuri_sets_none() {
    let mut cluster = started();
    cluster.parameters(json!({ "period": "10m" }));
    settle_at(&mut cluster, 1).status("/nextRun", at(90));
    cluster.edit(|kuri| kuri["spec"]["period"] = Value::Null);
    settle_at(&mut cluster, 1)
        .status("/nextRun", at(600))
        .condition_says("Periodic", "10m (the Module's spec.parameters.period)");
    cluster.parameters(Value::Null);
    settle_at(&mut cluster, 1).condition("Periodic", False, "RunsOnce");
}

#[test]
fn period_without_the_operation_cleanup_has_no_effect_and_says_so() {
    let mut cluster = started();
    cluster.parameters(json!({ "operations": ["deploy"] }));
    ends(&mut cluster, 5, "Complete");
    let run = settle_at(&mut cluster, 200);
    run.condition("Ready", True, "Succeeded")
        .condition("Periodic", False, "PeriodNeedsCleanup")
        .condition_says("Periodic", "spec.parameters.operations")
        .desires::<Job>(JOB);
    assert_eq!(*created(&cluster), at(0));
}

#[test]
fn periodic_kuri_stops_without_the_operation_deploy_and_keeps_its_history() {
    let mut cluster = started();
    ends(&mut cluster, 5, "Complete");
    settle_at(&mut cluster, 6);
    cluster.parameters(json!({ "operations": ["cleanup"] }));
    settle_at(&mut cluster, 200)
        .desires_objects(0)
        .status("/phase", "clean")
        .status("/runs", 1)
        .status("/history/0/start", at(0))
        .condition("Ready", True, "Clean")
        .condition("Periodic", False, "Stopped");
    assert!(!cluster.has::<Job>(JOB));
}

#[test]
fn deleted_periodic_kuri_goes_when_the_job_and_its_pods_are_gone() {
    let mut cluster = started();
    cluster.add(pod()).delete();
    settle_at(&mut cluster, 300).is_not_finalized().does_not_desire::<Job>(JOB);
    cluster.remove::<Pod>(POD);
    settle_at(&mut cluster, 301).is_finalized();
}

#[test]
fn nonsense_period_is_refused_and_the_kuri_can_still_be_deleted() {
    let overflow = "9".repeat(31) + "h";
    for (period, why) in [
        ("0", "is too short: use at least 10s"),
        ("0s", "is too short"),
        ("9s", "is too short"),
        ("999ms", "is too short"),
        ("8761h", "is too long: use at most 8760h"),
        (&overflow, "is not a duration"),
        ("-90s", "is not a duration"),
        ("90", "is not a duration"),
        ("", "is not a duration"),
        ("once", "is not a duration"),
        ("1month", "is not a duration"),
        ("９０s", "is not a duration"),
        ("90s\u{202e}", "is not a duration"),
        ("☃", "is not a duration"),
    ] {
        let mut kuri = sample();
        kuri["spec"]["period"] = json!(period);
        Scenario::<Guest>::of(kuri.clone())
            .run()
            .failed_because("InvalidPeriod")
            .condition("Ready", False, "InvalidPeriod")
            .condition("Periodic", False, "InvalidPeriod")
            .condition_says("Periodic", "spec.period")
            .condition_says("Periodic", why);
        Scenario::<Guest>::of(kuri.clone()).deleting().run().is_finalized();

        // The Kuri's own period counts first; the Module's is refused in the same way.
        let parameters = json!({ "period": period });
        Scenario::<Guest>::of(sample()).parameters(parameters.clone()).run().desires::<Job>(JOB);
        kuri["spec"]["period"] = Value::Null;
        Scenario::<Guest>::of(kuri)
            .parameters(parameters)
            .run()
            .failed_because("InvalidPeriod")
            .condition_says("Ready", "the Module's spec.parameters.period")
            .condition_says("Ready", why);
    }
}

#[test]
fn job_runs_again_when_the_definition_prunes_the_status() {
    let mut cluster = started();
    ends(&mut cluster, 5, "Complete");
    for seconds in [6, 60, 89] {
        cluster.edit(|kuri| kuri["status"] = json!({}));
        settle_at(&mut cluster, seconds).desires::<Job>(JOB);
    }
    assert_eq!(*created(&cluster), at(0));
    cluster.edit(|kuri| kuri["status"] = json!({}));
    settle_at(&mut cluster, 90).requeues_after(1);
    cluster.edit(|kuri| kuri["status"] = json!({}));
    settle_at(&mut cluster, 100).status("/phase", "setup");
    assert_eq!(*created(&cluster), at(100));
}

#[test]
fn nonsense_in_the_status_neither_fails_nor_stops_the_runs() {
    let later = json!({ "start": at(9_000_000), "end": at(9_000_001), "result": "Succeeded" });
    for status in [
        json!(null),
        json!("☃"),
        json!([]),
        json!({ "history": "☃", "runs": "many", "conditions": 7 }),
        json!({ "history": [null, 7, { "start": "☃", "end": "", "result": "Succeeded" }] }),
        json!({ "history": vec![later; 1000], "runs": i64::MAX }),
        json!({ "runs": -7, "conditions": [null, { "type": "Ready" }, { "type": "Ready", "status": "True", "reason": "Succeeded" }] }),
        json!({ "runs": 1e300 }),
    ] {
        let mut cluster = started();
        cluster.edit(|kuri| kuri["status"] = status.clone());
        settle_at(&mut cluster, 1).condition("Ready", False, "InProgress");
        ends(&mut cluster, 5, "Complete");
        settle_at(&mut cluster, 6);
        settle_at(&mut cluster, 90);
        assert_eq!(*created(&cluster), at(90), "{status}");

        let mut without_job = FakeCluster::<Guest>::with(sample());
        without_job.edit(|kuri| kuri["status"] = status.clone());
        settle_at(&mut without_job, 0);
        assert!(without_job.has::<Job>(JOB), "{status}");
    }
}

#[test]
fn next_run_is_not_earlier_when_another_client_deletes_the_ended_job() {
    let mut cluster = started();
    ends(&mut cluster, 5, "Failed");
    settle_at(&mut cluster, 6);
    cluster.remove::<Job>(JOB);
    settle_at(&mut cluster, 7)
        .desires_objects(0)
        .status("/phase", "failed")
        .status("/nextRun", at(90))
        .condition("Ready", False, "Failed")
        .requeues_after(83);
    settle_at(&mut cluster, 90).desires::<Job>(JOB);
}

#[test]
fn job_is_created_again_when_another_client_deletes_it_before_its_end() {
    let mut cluster = started();
    cluster.remove::<Job>(JOB);
    settle_at(&mut cluster, 7).status("/nextRun", at(97)).desires::<Job>(JOB);
}

#[test]
fn job_of_the_original_operator_is_taken_over_as_it_is_before_it_is_deleted() {
    let original = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": JOB, "creationTimestamp": at(0) },
        "spec": { "template": { "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{ "name": "task", "image": "busybox:0", "command": ["true"] }],
        } } },
        "status": {
            "completionTime": at(5),
            "conditions": [{ "type": "Complete", "status": "True" }],
        },
    });
    let given = || Scenario::<Guest>::of(sample()).at_ms(f64::from(START + 500) * 1000.0);
    let taken = given().owns_ready(original.clone()).run();
    taken
        .desires::<Job>(JOB)
        .without_policy()
        .without("/spec/template/metadata")
        .with("/spec/template/spec/restartPolicy", "OnFailure")
        .with("/spec/template/spec/containers/0/name", "task")
        .with("/spec/template/spec/containers/0/image", "busybox:0")
        .with("/spec/template/spec/containers/0/command", json!(["true"]));

    let mut applied = original;
    applied["metadata"]["labels"] = taken.objects()[0]["metadata"]["labels"].clone();
    given().owns_ready(applied).run().desires_objects(0).status("/phase", "cleanup");
}

#[test]
fn job_is_not_created_when_pods_cannot_be_read() {
    let run = Scenario::<Guest>::of(sample()).deny_reads::<innkeeper_sdk::read::Pod>().run();
    run.failed_because("Unreadable").condition("Ready", False, "Unreadable");
}
