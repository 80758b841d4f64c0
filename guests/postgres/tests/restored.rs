//! What users learn about data that was restored from a backup.

use innkeeper_sdk::ConditionStatus::True;
use innkeeper_sdk::kinds::Pod;
use innkeeper_sdk::testing::FakeCluster;
use postgres::Guest;
use serde_json::{Value, json};

const POD: &str = "foodb-5d9c7b6f4-x7k2p";
const EVENT: &str = "RestoredFromBackup";

/// The sample of the original operator with its Secret and a pod, which is not prepared.
fn cluster() -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(json!({
        "metadata": { "name": "foodb", "namespace": "demo" },
        "spec": { "db": "foo", "user": "foo", "password": "foodb-password" },
    }));
    cluster.add(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "foodb-password" },
        "data": { "postgresql_password": "0123456789abcdef" },
    }));
    cluster.add(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": POD, "labels": { "name": "foodb" } },
    }));
    cluster.settle();
    cluster
}

/// Sets the state of the pod's init container.
fn prepare_is(cluster: &mut FakeCluster<Guest>, state: &Value) {
    let status = json!({ "initContainerStatuses": [{ "name": "prepare", "state": state }] });
    cluster.change::<Pod>(POD, |pod| pod["status"] = status);
}

/// The state of an init container that has ended with 0 and this message.
fn ended(message: &str) -> Value {
    json!({ "terminated": { "exitCode": 0, "message": message } })
}

const OF_THE_FIRST: &str =
    "restored from 0000000002-20260101T000100Z.dump of 2026-01-01T00:01:00Z\n";
const OF_THE_SECOND: &str =
    "restored from 0000000009-20260102T000000Z.dump of 2026-01-02T00:00:00Z\n";

#[test]
fn restored_data_is_reported_with_the_time_of_its_backup_and_one_event() {
    let mut cluster = cluster();
    prepare_is(&mut cluster, &ended(OF_THE_FIRST));
    let (run, _) = cluster.round();
    run.condition("Restored", True, "FromBackup")
        .condition_says("Restored", "changes after 2026-01-01T00:01:00Z are lost")
        .status("/restoredFrom/backup", "0000000002-20260101T000100Z.dump")
        .status("/restoredFrom/time", "2026-01-01T00:01:00Z")
        .event(EVENT);
    cluster.settle().condition("Restored", True, "FromBackup").without_event(EVENT);

    // A second restore is another Event.
    prepare_is(&mut cluster, &ended(OF_THE_SECOND));
    cluster.round().0.event(EVENT).status("/restoredFrom/time", "2026-01-02T00:00:00Z");
}

#[test]
fn restored_data_is_reported_as_long_as_it_is_there_without_another_event() {
    let mut cluster = cluster();
    prepare_is(&mut cluster, &ended(OF_THE_FIRST));
    cluster.settle();
    // The next pod, before and after it is prepared.
    prepare_is(&mut cluster, &json!({ "running": {} }));
    cluster.round().0.condition("Restored", True, "FromBackup").without_event(EVENT);
    prepare_is(&mut cluster, &ended(OF_THE_FIRST));
    cluster.round().0.condition("Restored", True, "FromBackup").without_event(EVENT);

    // A pod with data that was not restored.
    prepare_is(&mut cluster, &ended(""));
    cluster.round().0.without_event(EVENT).without_status("/restoredFrom");
}

#[test]
fn message_of_an_unknown_form_is_ignored() {
    let mut cluster = cluster();
    for message in ["restored from foo.dump of yesterday", "\u{0}", &"a".repeat(4096)] {
        prepare_is(&mut cluster, &ended(message));
        cluster.round().0.is_complete().without_event(EVENT).without_status("/restoredFrom");
    }
}
