//! What users of postgres can rely on. Tests of the scripts are in `scripts`.

use expect_test::expect_file;
use innkeeper_sdk::ConditionStatus::{False, True};
use innkeeper_sdk::kinds::{ConfigMap, CronJob, Deployment, PersistentVolumeClaim, Pod, Service};
use innkeeper_sdk::testing::{FakeCluster, Scenario};
use innkeeper_sdk::{Policy, Reconciler as _, read, schema};
use postgres::{DIGEST_ANNOTATION, Guest, PostgreSQL};
use serde_json::{Value, json};

const NAME: &str = "foodb";
const DATA: &str = "foodb-data";
const BACKUPS: &str = "foodb-backups";
const JOB: &str = "foodb-backup";
const POD: &str = "foodb-5d9c7b6f4-x7k2p";

/// The sample of the original operator.
fn sample() -> Value {
    json!({
        "metadata": { "name": NAME, "namespace": "demo" },
        "spec": { "db": "foo", "user": "foo", "password": "foodb-password" },
    })
}

/// The sample with a change.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut primary = sample();
    change(&mut primary);
    primary
}

/// The sample's Secret as guests see it, with a digest of the password.
fn secret(digest: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "foodb-password" },
        "data": { "postgresql_password": digest },
    })
}

/// A pod of the Deployment, whose init container is as given.
fn pod(prepare: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": POD, "labels": { "name": NAME } },
        "status": {
            "phase": "Pending",
            "initContainerStatuses": [{ "name": "prepare", "state": prepare }],
        },
    })
}

fn ended(exit_code: i32) -> Value {
    json!({ "terminated": { "exitCode": exit_code } })
}

/// The primary and its Secret.
fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary).with_object(secret("0123456789abcdef"))
}

/// The sample and its Secret, settled.
fn settled() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(sample());
    cluster.add(secret("0123456789abcdef"));
    cluster.settle();
    cluster
}

fn rolled_out(cluster: &FakeCluster<Guest>) -> &Value {
    &cluster.object::<Deployment>(NAME)["spec"]["template"]["metadata"]["annotations"]
        [DIGEST_ANNOTATION]
}

#[test]
fn a_postgresql_becomes_a_server_two_volumes_and_a_backup_job() {
    let run = given(sample()).run();
    run.is_complete().desires_objects(6);
    run.desires::<Service>(NAME)
        .with("/spec/type", "NodePort")
        .with("/spec/selector", json!({ "name": NAME }))
        .with("/spec/ports/0/port", 5432);
    run.desires::<Deployment>(NAME)
        .with("/spec/replicas", 1)
        .with("/spec/strategy/type", "Recreate")
        .with("/spec/template/metadata/labels", json!({ "name": NAME }))
        .with("/spec/template/spec/terminationGracePeriodSeconds", 60);
    run.desires::<PersistentVolumeClaim>(DATA);
    run.desires::<PersistentVolumeClaim>(BACKUPS);
    run.desires::<CronJob>(JOB)
        .with("/spec/schedule", "* * * * *")
        .with("/spec/concurrencyPolicy", "Forbid");
}

#[test]
fn objects_equal_the_golden_file() {
    // Without the ConfigMap of the scripts, which are files of their own.
    let run = given(sample()).run();
    let objects: Vec<String> = run
        .objects()
        .iter()
        .filter(|object| object["kind"] != "ConfigMap")
        .map(|object| format!("{object:#}\n"))
        .collect();
    expect_file!["golden/objects.json"].assert_eq(&without_digests(&objects.concat()));
}

/// Removes the digest of the scripts from the name of their `ConfigMap`.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("foodb-scripts-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| format!("{all}foodb-scripts-<digest>{}", &part[8..]))
}

#[test]
fn the_containers_run_the_scripts() {
    let run = given(sample()).run();
    let scripts = run.objects().iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let name = scripts["metadata"]["name"].as_str().unwrap();
    for script in ["backup.sh", "common.sh", "prepare.sh", "serve.sh"] {
        let text = scripts["data"][script].as_str().unwrap();
        assert!(text.contains("set -eu") || text.contains(". \"$(dirname \"$0\")/common.sh\""));
    }
    let command = |script: &str| json!(["sh", format!("/scripts/{script}.sh")]);
    run.desires::<Deployment>(NAME)
        .with("/spec/template/spec/initContainers/0/command", command("prepare"))
        .with("/spec/template/spec/containers/0/command", command("serve"))
        .with("/spec/template/spec/volumes/2/configMap/name", name);
    run.desires::<CronJob>(JOB)
        .with("/spec/jobTemplate/spec/template/spec/containers/0/command", command("backup"))
        .with("/spec/jobTemplate/spec/template/spec/volumes/1/configMap/name", name);
}

#[test]
fn everything_that_a_manifest_leaves_out_has_a_default() {
    let run = given(sample()).run();
    run.desires::<Deployment>(NAME)
        .with("/spec/template/spec/containers/0/image", "postgres:15")
        .with("/spec/template/spec/initContainers/0/image", "postgres:15");
    for claim in [DATA, BACKUPS] {
        run.desires::<PersistentVolumeClaim>(claim)
            .with("/spec/resources/requests/storage", "1Gi")
            .with("/spec/accessModes", json!(["ReadWriteOnce"]))
            .without("/spec/storageClassName");
    }
    run.desires::<CronJob>(JOB)
        .with("/spec/jobTemplate/spec/template/spec/containers/0/env/1/value", "10");
}

#[test]
fn image_storage_and_backup_can_be_given() {
    let primary = changed(|pg| {
        pg["spec"]["image"] = json!("postgres:16");
        pg["spec"]["storage"] = json!({ "size": "20Gi", "className": "fast" });
        pg["spec"]["backup"] = json!({ "schedule": "0 * * * *", "keep": 3, "size": "5Gi" });
    });
    let run = given(primary).run();
    run.desires::<Deployment>(NAME).with("/spec/template/spec/containers/0/image", "postgres:16");
    run.desires::<PersistentVolumeClaim>(DATA)
        .with("/spec/resources/requests/storage", "20Gi")
        .with("/spec/storageClassName", "fast");
    run.desires::<PersistentVolumeClaim>(BACKUPS)
        .with("/spec/resources/requests/storage", "5Gi")
        .with("/spec/storageClassName", "fast");
    run.desires::<CronJob>(JOB)
        .with("/spec/schedule", "0 * * * *")
        .with("/spec/jobTemplate/spec/template/spec/containers/0/env/1/value", "3")
        .with("/spec/jobTemplate/spec/template/spec/containers/0/image", "postgres:16");
}

#[test]
fn the_password_is_read_by_the_kubelet_and_only_where_it_is_needed() {
    let reference =
        json!({ "secretKeyRef": { "name": "foodb-password", "key": "postgresql_password" } });
    let run = given(sample()).run();
    run.desires::<Deployment>(NAME)
        .with("/spec/template/spec/initContainers/0/env/4/name", "POSTGRES_PASSWORD")
        .with("/spec/template/spec/initContainers/0/env/4/valueFrom", reference.clone())
        .with(
            "/spec/template/spec/containers/0/env",
            json!([{ "name": "DATA", "value": "/data" }]),
        );
    run.desires::<CronJob>(JOB)
        .with("/spec/jobTemplate/spec/template/spec/containers/0/env/6/valueFrom", reference);
}

#[test]
fn a_changed_password_is_rolled_out() {
    let mut cluster = settled();
    assert_eq!(rolled_out(&cluster), "0123456789abcdef");
    cluster.change::<read::Secret>("foodb-password", |secret| {
        secret["data"]["postgresql_password"] = json!("fedcba9876543210");
    });
    cluster.settle().is_complete();
    assert_eq!(rolled_out(&cluster), "fedcba9876543210");
}

#[test]
fn without_the_secret_nothing_is_made() {
    let mut cluster = FakeCluster::<Guest>::with(sample());
    cluster
        .settle()
        .is_partial()
        .desires_objects(0)
        .condition("PasswordFound", False, "SecretMissing")
        .condition("Ready", False, "SecretMissing")
        .condition_says("Ready", "there is no Secret foodb-password");

    cluster.add(secret("0123456789abcdef"));
    cluster.settle().is_complete().desires_objects(6).condition("PasswordFound", True, "Found");
}

#[test]
fn password_is_missing_when_the_secret_lacks_the_key() {
    let mut other = secret("0123456789abcdef");
    other["data"] = json!({ "password": "0123456789abcdef" });
    Scenario::<Guest>::of(sample())
        .with_object(other)
        .run()
        .is_partial()
        .desires_objects(0)
        .condition("PasswordFound", False, "KeyMissing")
        .condition_says("Ready", "has no key postgresql_password");
}

#[test]
fn password_is_missing_when_the_secret_cannot_be_read() {
    given(sample())
        .deny_reads::<read::Secret>()
        .run()
        .is_partial()
        .condition("Ready", False, "SecretUnreadable")
        .condition_says("Ready", "get Secret");
}

#[test]
fn when_the_secret_goes_later_everything_stays_and_is_still_looked_after() {
    let mut cluster = settled();
    cluster.remove::<read::Secret>("foodb-password");
    cluster.change::<Deployment>(NAME, |one| one["spec"]["replicas"] = json!(3));
    cluster.settle().is_partial().desires_objects(6).condition("Ready", False, "SecretMissing");
    assert_eq!(cluster.object::<Deployment>(NAME)["spec"]["replicas"], 1, "drift is set back");
    assert_eq!(rolled_out(&cluster), "0123456789abcdef", "and no pod is rolled out");
}

#[test]
fn a_pod_is_labelled_when_its_data_has_been_prepared() {
    let mut cluster = settled();
    cluster.add(pod(&json!({ "running": {} })));
    cluster.settle().does_not_desire::<Pod>(POD).status("/appReady", false).status("/pod", POD);

    cluster.change::<Pod>(POD, |one| *one = namespaced(pod(&ended(1))));
    cluster.settle().does_not_desire::<Pod>(POD);

    cluster.change::<Pod>(POD, |one| *one = namespaced(pod(&ended(0))));
    let run = cluster.settle();
    run.status("/appReady", true);
    let merged = run.desires::<Pod>(POD).policy(Policy::Merge);
    merged.with("/metadata/labels", json!({ "appReady": "ok" })).without("/spec");
    assert_eq!(
        cluster.object::<Pod>(POD)["metadata"]["labels"],
        json!({ "name": NAME, "appReady": "ok" })
    );
}

fn namespaced(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!("demo");
    object
}

#[test]
fn pod_is_not_labelled_while_it_is_being_deleted() {
    let mut going = pod(&ended(0));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    given(sample()).with_object(going).run().does_not_desire::<Pod>(POD).status("/appReady", false);
}

#[test]
fn the_service_does_not_depend_on_the_label() {
    given(sample()).run().desires::<Service>(NAME).with("/spec/selector", json!({ "name": NAME }));
}

#[test]
fn pods_of_backups_are_not_selected_by_the_service_and_run_on_the_node_of_the_volume() {
    let run = given(sample()).run();
    let term = "/spec/jobTemplate/spec/template/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
    run.desires::<CronJob>(JOB)
        .with(
            "/spec/jobTemplate/spec/template/metadata/labels",
            json!({ "postgresql-backup": NAME }),
        )
        .with(&format!("{term}/labelSelector/matchLabels"), json!({ "name": NAME }))
        .with(&format!("{term}/topologyKey"), "kubernetes.io/hostname");
}

#[test]
fn volumes_have_no_owner_and_outlive_the_postgresql() {
    let run = given(sample()).run();
    for claim in [DATA, BACKUPS] {
        // With this policy the next PostgreSQL of the same name adopts the claims; more labels
        // would prevent that.
        run.desires::<PersistentVolumeClaim>(claim)
            .policy(Policy::Orphan)
            .without("/metadata/labels");
    }
}

#[test]
fn with_the_policy_delete_the_volumes_go_with_the_postgresql() {
    let primary = changed(|pg| pg["spec"]["deletionPolicy"] = json!("Delete"));
    let mut cluster = FakeCluster::<Guest>::with(primary);
    cluster.add(secret("0123456789abcdef"));
    let run = cluster.settle();
    for claim in [DATA, BACKUPS] {
        run.desires::<PersistentVolumeClaim>(claim).policy(Policy::Deletable);
    }
    cluster.delete();
    assert!(!cluster.has::<PersistentVolumeClaim>(DATA));
    assert!(!cluster.has::<PersistentVolumeClaim>(BACKUPS));
}

#[test]
fn a_deleted_postgresql_leaves_its_volumes_and_nothing_else() {
    let mut cluster = settled();
    cluster.delete();
    assert!(cluster.has::<PersistentVolumeClaim>(DATA));
    assert!(cluster.has::<PersistentVolumeClaim>(BACKUPS));
    assert!(!cluster.has::<Deployment>(NAME) && !cluster.has::<CronJob>(JOB));
}

#[test]
fn postgresql_is_ready_when_the_server_is_and_reports_its_backups() {
    let mut cluster = settled();
    cluster
        .settle()
        .condition("Ready", False, "InProgress")
        .condition("BackedUp", False, "NoneYet");

    cluster.becomes_ready::<Deployment>(NAME);
    cluster.change::<CronJob>(JOB, |job| {
        job["status"] = json!({
            "lastScheduleTime": "2026-01-01T00:01:00Z",
            "lastSuccessfulTime": "2026-01-01T00:01:05Z",
        });
    });
    cluster
        .settle()
        .condition("Ready", True, "AllReady")
        .condition("BackedUp", True, "LastSucceeded")
        .status("/lastBackup", "2026-01-01T00:01:05Z");
}

#[test]
fn backed_up_is_false_after_a_failed_backup_and_not_while_one_runs() {
    let mut cluster = settled();
    let status = |active: Value| {
        json!({
            "lastScheduleTime": "2026-01-01T00:02:00Z",
            "lastSuccessfulTime": "2026-01-01T00:01:05Z",
            "active": active,
        })
    };
    cluster.change::<CronJob>(JOB, |job| job["status"] = status(json!([{ "name": "running" }])));
    cluster.settle().condition("BackedUp", True, "LastSucceeded");
    cluster.change::<CronJob>(JOB, |job| job["status"] = status(json!([])));
    cluster
        .settle()
        .condition("BackedUp", False, "LastFailed")
        .condition_says("BackedUp", "foodb-backup")
        .event("BackupFailed")
        .status("/lastBackup", "2026-01-01T00:01:05Z");
}

#[test]
fn postgresql_is_refused_when_its_name_is_not_a_service_name() {
    for name in ["9db", "foo.db", &"a".repeat(64)] {
        let primary = changed(|pg| pg["metadata"]["name"] = json!(name));
        given(primary).run().failed_because("UnusableName").desires_objects(0).condition(
            "Ready",
            False,
            "UnusableName",
        );
    }
}

#[test]
fn cron_job_name_has_at_most_52_characters_with_the_longest_name() {
    let primary = changed(|pg| pg["metadata"]["name"] = json!("a".repeat(63)));
    let run = given(primary).run();
    let job = run.objects().iter().find(|object| object["kind"] == "CronJob").unwrap();
    assert!(job["metadata"]["name"].as_str().unwrap().len() <= 52);
}

#[test]
fn run_is_retried_when_pods_cannot_be_read() {
    let run = given(sample()).deny_reads::<Pod>().run();
    run.failed_because("Unreadable").condition("Ready", False, "Unreadable");
    assert!(!run.failure().unwrap().permanent);
}

#[test]
fn config_map_name_contains_the_digest_of_the_scripts() {
    let run = given(sample()).run();
    let names: Vec<&str> = run
        .objects()
        .iter()
        .filter(|object| object["kind"] == "ConfigMap")
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].strip_prefix("foodb-scripts-").is_some_and(|digest| digest.len() == 8));
    run.desires::<ConfigMap>(names[0]).without_policy();
}

#[test]
fn the_objects_of_the_original_operator_can_be_adopted() {
    // The host adopts an object only if it carries all desired labels.
    let run = given(sample()).run();
    run.desires::<Deployment>(NAME).without("/metadata/labels");
    run.desires::<Service>(NAME).without("/metadata/labels");
}

#[test]
fn a_deployment_that_rolls_cannot_be_made_to_recreate_so_it_replaces_its_pod_in_place() {
    // The defaults of the API server for a Deployment without a strategy.
    let original = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": NAME },
        "spec": {
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" },
            },
        },
    });
    let in_place = json!({
        "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 },
    });
    let before = given(sample()).with_object(original.clone()).run();
    before.desires::<Deployment>(NAME).with("/spec/strategy", in_place.clone());
    let after = given(sample()).owns_ready(original).run();
    after.desires::<Deployment>(NAME).with("/spec/strategy", in_place);
}

#[test]
fn crd_file_is_what_the_types_generate() {
    expect_file!["../crd.json"].assert_eq(&schema::crd_text::<PostgreSQL>());
}

#[test]
fn the_crd_has_the_names_of_the_original() {
    let crd = schema::crd::<PostgreSQL>();
    assert_eq!(crd["metadata"]["name"], "postgresqls.exp.wheel.jp");
    assert_eq!(crd["spec"]["names"]["singular"], "postgresql");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["pg"]));
    assert_eq!(Guest::describe().primary.unwrap().version(), "v1");
    assert_eq!(crd["spec"]["names"]["kind"], "PostgreSQL");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    for field in ["db", "user", "password"] {
        assert_eq!(schema["spec"]["properties"][field]["type"], "string", "{field}");
    }
    assert_eq!(schema["spec"]["required"], json!(["db", "user", "password"]));
}

#[test]
fn guest_runs_on_changes_only() {
    assert_eq!(Guest::describe().resync_seconds, None);
}

#[test]
fn sample_manifest_is_a_postgresql() {
    let text = include_str!("../../../deploy/samples/postgres.yaml");
    // The sample's values, one by one: a YAML library would be a dependency for a few lines.
    for line in [
        "apiVersion: exp.wheel.jp/v1",
        "kind: PostgreSQL",
        "  name: foodb",
        "  db: foo",
        "  user: foo",
        "  password: foodb-password",
        "  postgresql_password: bXlwYXNzd29yZA==",
    ] {
        assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`");
    }
}
