//! What a user may do to the volumes without losing the only copy of the rows.

use super::*;

// A round applies the claims again, and with them ends a deletion: one round sees it.

/// The annotation of the Deployment with the claims that the volumes have left.
const LEFT: &str = "/metadata/annotations/exp.wheel.jp~1left-claim";

fn ephemeral() -> FakeCluster<Guest> {
    let mut cluster =
        settled(primary(&json!({ "ephemeral": true }), &json!({ "className": "fast" })), &["mine"]);
    binds(&mut cluster, BACKUPS, "fast");
    cluster.becomes_ready::<Deployment>(NAME);
    cluster.settle().condition(READY, True, "Bound");
    cluster
}

fn on_claims(claims: &[&str]) -> FakeCluster<Guest> {
    let mut cluster = settled(sample(), claims);
    for name in [DATA, BACKUPS] {
        binds(&mut cluster, name, "fast");
    }
    cluster.becomes_ready::<Deployment>(NAME);
    cluster.settle().condition(READY, True, "Bound");
    cluster
}

fn terminates(cluster: &mut FakeCluster<Guest>, name: &str) {
    cluster.change::<PersistentVolumeClaim>(name, |claim| {
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
}

fn is_lost(cluster: &mut FakeCluster<Guest>, name: &str) {
    cluster.change::<PersistentVolumeClaim>(name, |claim| {
        claim["status"] = json!({ "phase": "Lost" });
    });
}

fn consents(cluster: &mut FakeCluster<Guest>, claims: &str) {
    cluster.edit(|one| one["metadata"]["annotations"] = json!({ LEAVE_ANNOTATION: claims }));
}

fn moves(cluster: &mut FakeCluster<Guest>, field: &str, to: &Value) {
    cluster.edit(|one| one["spec"][field] = to.clone());
}

/// The message of `StorageReady` in the status.
fn message(cluster: &mut FakeCluster<Guest>) -> String {
    let mut conditions = Value::Null;
    cluster.edit(|one| conditions = one["status"]["conditions"].clone());
    let ready = conditions.as_array().into_iter().flatten().find(|one| one["type"] == READY);
    let message = ready.and_then(|one| one["message"].as_str());
    message.unwrap_or_default().to_owned()
}

#[track_caller]
fn says_how_to_save_the_rows(cluster: &mut FakeCluster<Guest>) {
    let dump = "kubectl exec deployment/foodb -c postgres -- pg_dump -Fc -U foo -d foo >foodb.dump";
    let message = message(cluster);
    assert!(message.contains(dump) && !message.contains("delete pod"), "{message}");
}

#[test]
fn advice_for_backups_of_ephemeral_data_saves_the_rows_and_never_deletes_the_pod() {
    type Change = fn(&mut FakeCluster<Guest>);
    let changes: [(&str, Change); 3] = [
        ("ClaimTerminating", |cluster| terminates(cluster, BACKUPS)),
        ("ClaimLost", |cluster| is_lost(cluster, BACKUPS)),
        ("ClassUnchanged", |cluster| moves(cluster, "backup", &json!({ "className": "other" }))),
    ];
    for (reason, change) in changes {
        let mut cluster = ephemeral();
        change(&mut cluster);
        let (run, _) = cluster.round();
        run.condition(READY, False, reason);
        says_how_to_save_the_rows(&mut cluster);
    }
}

#[test]
fn advice_for_data_names_no_deletion_of_the_pod_when_the_backups_go_too() {
    type Change = fn(&mut FakeCluster<Guest>, &str);
    let changes: [Change; 2] = [terminates, is_lost];
    for change in changes {
        let mut cluster = on_claims(&[]);
        change(&mut cluster, DATA);
        let (run, _) = cluster.round();
        run.condition_says(READY, "wait for a backup, then run");
        change(&mut cluster, DATA);
        change(&mut cluster, BACKUPS);
        cluster.round();
        says_how_to_save_the_rows(&mut cluster);
    }
}

#[test]
fn ephemeral_data_stays_in_the_pod_while_its_backups_are_going() {
    type Change = fn(&mut FakeCluster<Guest>, &str);
    let changes: [Change; 2] = [terminates, is_lost];
    for change in changes {
        let mut cluster = ephemeral();
        change(&mut cluster, BACKUPS);
        moves(&mut cluster, "storage", &json!({}));
        cluster.round();
        assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
        says_how_to_save_the_rows(&mut cluster);
    }
}

#[test]
fn backups_of_ephemeral_data_stay_with_consent_and_also_when_their_claim_is_deleted() {
    let mut cluster = ephemeral();
    moves(&mut cluster, "backup", &json!({ "claimName": "mine" }));
    consents(&mut cluster, BACKUPS);
    cluster
        .settle()
        .condition(READY, False, "ClaimInUse")
        .condition_says(READY, "set ephemeral to false");
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);

    terminates(&mut cluster, BACKUPS);
    let (run, _) = cluster.round();
    run.condition(READY, False, "ClaimInUse");
    says_how_to_save_the_rows(&mut cluster);
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
}

#[test]
fn backups_leave_only_after_the_server_is_ready_on_the_new_claim_of_the_data() {
    let mut cluster = on_claims(&["mine", "shared"]);
    moves(&mut cluster, "storage", &json!({ "claimName": "mine" }));
    moves(&mut cluster, "backup", &json!({ "claimName": "shared" }));
    consents(&mut cluster, "foodb-data,foodb-backups");
    let (run, _) = cluster.round();
    run.condition(READY, False, "ClaimInUse").condition_says(READY, "moves in the same rollout");
    assert_eq!(deployed(&cluster), ["mine", BACKUPS]);
    cluster.becomes_unready::<Deployment>(NAME, "0 of 1 pods are ready");
    cluster.settle().condition_says(READY, "wait until Ready is True");
    assert_eq!(deployed(&cluster), ["mine", BACKUPS]);
    cluster.becomes_ready::<Deployment>(NAME);
    cluster.settle().condition(READY, True, "Bound");
    assert_eq!(deployed(&cluster), ["mine", "shared"]);
}

#[test]
fn data_that_goes_with_its_claim_keeps_the_backups_where_they_are() {
    let mut cluster = on_claims(&["shared"]);
    terminates(&mut cluster, DATA);
    moves(&mut cluster, "storage", &json!({ "ephemeral": true }));
    moves(&mut cluster, "backup", &json!({ "claimName": "shared" }));
    consents(&mut cluster, BACKUPS);
    cluster.settle().condition(READY, False, "ClaimInUse");
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
}

#[test]
fn data_stays_on_its_claim_with_consent_when_the_backups_are_gone() {
    let mut cluster = on_claims(&["mine"]);
    is_lost(&mut cluster, BACKUPS);
    moves(&mut cluster, "storage", &json!({ "claimName": "mine" }));
    consents(&mut cluster, DATA);
    cluster.settle();
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);
}

#[test]
fn retained_backups_are_not_left_when_there_is_no_data() {
    let mut retained = claim(BACKUPS);
    retained["metadata"]["labels"] = json!({ "innkeeper.dev/retained-for": "0123" });
    let mut spec = primary(&json!({}), &json!({ "claimName": "shared" }));
    spec["metadata"]["annotations"] = json!({ LEAVE_ANNOTATION: BACKUPS });
    let run = given(spec).with_object(retained).with_object(claim("shared")).run();
    run.condition(READY, False, "ClaimInUse");
    assert_eq!(claims_of(&run), [DATA, BACKUPS]);
}

#[test]
fn consent_permits_one_move_and_only_from_the_claim_that_it_names() {
    let mut cluster = on_claims(&["mine"]);
    let in_pod = json!({ "ephemeral": true });
    consents(&mut cluster, "mine");
    moves(&mut cluster, "storage", &in_pod);
    cluster.settle().condition_says(READY, "foodb-data --overwrite");
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);

    consents(&mut cluster, DATA);
    let run = cluster.settle();
    run.desires::<Deployment>(NAME).with(LEFT, DATA);
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
    moves(&mut cluster, "storage", &json!({}));
    cluster.settle();
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);

    // The annotation is still there, and has no effect.
    moves(&mut cluster, "storage", &in_pod);
    cluster
        .settle()
        .condition(READY, False, "ClaimInUse")
        .condition_says(READY, &format!("kubectl annotate pg {NAME} {LEAVE_ANNOTATION}-`"));
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);

    cluster.edit(|one| one["metadata"]["annotations"] = json!({}));
    let run = cluster.settle();
    run.condition_says(READY, "wait for a backup").desires::<Deployment>(NAME).without(LEFT);
    consents(&mut cluster, DATA);
    cluster.settle().condition(PERSISTENT, False, "InPod");
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
}
