//! Where the volumes are, by spec, parameters and observed claims.

use innkeeper_sdk::ConditionStatus::{False, True, Unknown};
use innkeeper_sdk::kinds::{CronJob, Deployment, PersistentVolumeClaim};
use innkeeper_sdk::testing::{FakeCluster, Run, Scenario};
use innkeeper_sdk::{Policy, Reconciler as _};
use postgres::{Guest, LEAVE_ANNOTATION};
use serde_json::{Value, json};

#[path = "storage/leaving.rs"]
mod leaving;

const NAME: &str = "foodb";
const DATA: &str = "foodb-data";
const BACKUPS: &str = "foodb-backups";
const JOB: &str = "foodb-backup";
const READY: &str = "StorageReady";
const PERSISTENT: &str = "DataPersistent";

/// The sample with these volumes.
fn primary(storage: &Value, backup: &Value) -> Value {
    json!({
        "metadata": { "name": NAME, "namespace": "demo" },
        "spec": {
            "db": "foo", "user": "foo", "password": "foodb-password",
            "storage": storage, "backup": backup,
        },
    })
}

/// The sample of the original operator.
fn sample() -> Value {
    primary(&json!({}), &json!({}))
}

fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "foodb-password" },
        "data": { "postgresql_password": "0123456789abcdef" },
    })
}

/// A bound claim that a user has created.
fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": { "storageClassName": "shared" }, "status": { "phase": "Bound" },
    })
}

fn given(primary: Value) -> Scenario<Guest> {
    Scenario::of(primary).with_object(secret())
}

fn settled(primary: Value, claims: &[&str]) -> FakeCluster<Guest> {
    let mut cluster = FakeCluster::with(primary);
    cluster.add(secret());
    for name in claims {
        cluster.add(claim(name));
    }
    cluster.settle();
    cluster
}

/// The API server gives a claim a class and a volume.
fn binds(cluster: &mut FakeCluster<Guest>, name: &str, class: &str) {
    cluster.change::<PersistentVolumeClaim>(name, |claim| {
        claim["spec"]["storageClassName"] = json!(class);
        claim["status"] = json!({ "phase": "Bound" });
    });
}

/// The claims of the deployed pods, of the data and of the backups; null for an emptyDir.
fn deployed(cluster: &FakeCluster<Guest>) -> [Value; 2] {
    let volumes = &cluster.object::<Deployment>(NAME)["spec"]["template"]["spec"]["volumes"];
    [0, 1].map(|index| volumes[index]["persistentVolumeClaim"]["claimName"].clone())
}

fn claims_of(run: &Run) -> [Value; 2] {
    let deployment = run.desires::<Deployment>(NAME).object();
    let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
    [0, 1].map(|index| volumes[index]["persistentVolumeClaim"]["claimName"].clone())
}

#[test]
fn data_and_backups_have_storage_classes_of_their_own() {
    let run =
        given(primary(&json!({ "className": "fast" }), &json!({ "className": "cheap" }))).run();
    run.desires::<PersistentVolumeClaim>(DATA).with("/spec/storageClassName", "fast");
    run.desires::<PersistentVolumeClaim>(BACKUPS).with("/spec/storageClassName", "cheap");

    let run = given(primary(&json!({}), &json!({ "className": "cheap" }))).run();
    run.desires::<PersistentVolumeClaim>(DATA).without("/spec/storageClassName");
    run.desires::<PersistentVolumeClaim>(BACKUPS).with("/spec/storageClassName", "cheap");
}

#[test]
fn existing_claims_are_mounted_and_never_desired() {
    let spec = primary(&json!({ "claimName": "mine" }), &json!({ "claimName": "shared" }));
    let run = given(spec).with_object(claim("mine")).with_object(claim("shared")).run();
    run.is_complete()
        .desires_objects(4)
        .does_not_desire::<PersistentVolumeClaim>("mine")
        .does_not_desire::<PersistentVolumeClaim>("shared")
        .condition(READY, True, "Bound")
        .condition(PERSISTENT, True, "OnClaim");
    assert_eq!(claims_of(&run), ["mine", "shared"]);
    run.desires::<CronJob>(JOB).with(
        "/spec/jobTemplate/spec/template/spec/volumes/0/persistentVolumeClaim/claimName",
        "shared",
    );
}

#[test]
fn shared_claim_of_backups_has_one_directory_for_each_postgresql() {
    let spec = primary(&json!({}), &json!({ "claimName": "shared" }));
    let run = given(spec).with_object(claim("shared")).run();
    let own =
        json!({ "name": "server-backups", "mountPath": "/backups", "subPath": "foodb.backups" });
    // Where the original operator wrote `<name>.sql`.
    let root = json!({ "name": "server-backups", "mountPath": "/backups/backup" });
    run.desires::<Deployment>(NAME)
        .with("/spec/template/spec/initContainers/0/volumeMounts/1", own.clone())
        .with("/spec/template/spec/initContainers/0/volumeMounts/2", root);
    run.desires::<CronJob>(JOB)
        .with("/spec/jobTemplate/spec/template/spec/containers/0/volumeMounts/0", own);
}

#[test]
fn server_of_ephemeral_data_cannot_write_the_backups_of_others() {
    let spec = primary(&json!({ "ephemeral": true }), &json!({ "claimName": "shared" }));
    let run = given(spec).with_object(claim("shared")).run();
    let root =
        json!({ "name": "server-backups", "mountPath": "/backups/backup", "readOnly": true });
    let deployment = run.desires::<Deployment>(NAME).object();
    let mounts = &deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
    assert!(mounts.as_array().unwrap().contains(&root), "{mounts}");
}

#[test]
fn volumes_name_the_postgresql_that_they_belong_to() {
    let run = given(sample()).run();
    let owner = json!({ "name": "OWNER", "value": "exp.wheel.jp/PostgreSQL/demo/foodb" });
    for (name, pointer) in [
        ("Deployment", "/spec/template/spec/initContainers/0/env"),
        ("CronJob", "/spec/jobTemplate/spec/template/spec/containers/0/env"),
    ] {
        let object = run.objects().iter().find(|object| object["kind"] == name).unwrap();
        let env = object.pointer(pointer).and_then(Value::as_array).unwrap();
        assert!(env.contains(&owner), "{name}: {env:?}");
    }
}

#[test]
fn ephemeral_data_is_in_the_pod_and_the_condition_says_what_is_lost() {
    let run = given(primary(&json!({ "ephemeral": true }), &json!({}))).run();
    run.is_complete()
        .does_not_desire::<PersistentVolumeClaim>(DATA)
        .condition(PERSISTENT, False, "InPod")
        .condition_says(PERSISTENT, "the rows written since that backup are lost");
    run.desires::<PersistentVolumeClaim>(BACKUPS).policy(Policy::Orphan);
    let pod = "/spec/template/spec";
    let deployment = run.desires::<Deployment>(NAME);
    let deployment = deployment
        .with("/spec/strategy/type", "Recreate")
        .with(&format!("{pod}/volumes/0"), json!({ "name": "server-data", "emptyDir": {} }));
    // Both lock the volume of the backups, and the server may have to restore again.
    let spec = &deployment.object()["spec"]["template"]["spec"];
    for container in [&spec["initContainers"][0], &spec["containers"][0]] {
        let env = container["env"].as_array().unwrap();
        assert!(env.contains(&json!({ "name": "EPHEMERAL", "value": "yes" })), "{env:?}");
        assert!(env.iter().any(|one| one["name"] == "POSTGRES_PASSWORD"), "{env:?}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|one| one["mountPath"] == "/backups"), "{mounts:?}");
    }
}

#[test]
fn parameters_are_defaults_and_the_spec_comes_first() {
    let parameters = json!({
        "storage": { "ephemeral": true },
        "backup": { "claimName": "shared" },
    });
    let run = given(sample()).with_object(claim("shared")).parameters(parameters.clone()).run();
    run.is_complete().condition(PERSISTENT, False, "InPod");
    assert_eq!(claims_of(&run), [Value::Null, json!("shared")]);

    let spec = primary(&json!({ "ephemeral": false }), &json!({ "className": "cheap" }));
    let run = given(spec).with_object(claim("shared")).parameters(parameters).run();
    assert_eq!(claims_of(&run), [DATA, BACKUPS]);
    run.desires::<PersistentVolumeClaim>(BACKUPS).with("/spec/storageClassName", "cheap");

    let classes = json!({ "storage": { "className": "fast" }, "backup": { "className": "cheap" } });
    let run = given(sample()).parameters(classes).run();
    run.desires::<PersistentVolumeClaim>(DATA).with("/spec/storageClassName", "fast");
    run.desires::<PersistentVolumeClaim>(BACKUPS).with("/spec/storageClassName", "cheap");
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for parameters in [json!({ "storage": { "size": "1Gi" } }), json!({ "volumes": {} })] {
        given(sample()).parameters(parameters).run().failed_because("BadParameters");
    }
    let schema = Guest::describe().parameters_schema.unwrap().value();
    assert_eq!(schema["properties"]["backup"]["properties"].get("ephemeral"), None);
}

#[test]
fn storage_without_a_class_says_which_field_to_set() {
    let mut cluster = settled(sample(), &[]);
    for name in [DATA, BACKUPS] {
        cluster.change::<PersistentVolumeClaim>(name, |one| {
            one["status"] = json!({ "phase": "Pending" });
        });
    }
    cluster
        .settle()
        .is_complete()
        .condition(READY, False, "NoStorageClass")
        .condition("Ready", False, "NoStorageClass")
        .condition_says(READY, "set spec.storage.className")
        .condition_says(READY, "kubectl get storageclass");

    // The user follows the message.
    cluster.edit(|one| one["spec"]["storage"]["className"] = json!("fast"));
    cluster.settle().is_complete().condition(READY, False, "NotBound");
    for name in [DATA, BACKUPS] {
        assert_eq!(
            cluster.object::<PersistentVolumeClaim>(name)["spec"]["storageClassName"],
            "fast"
        );
        binds(&mut cluster, name, "fast");
    }
    cluster.settle().condition(READY, True, "Bound");
}

#[test]
fn claim_that_waits_for_its_first_pod_is_no_problem() {
    let mut cluster = settled(primary(&json!({ "className": "fast" }), &json!({})), &[]);
    cluster
        .change::<PersistentVolumeClaim>(DATA, |one| one["status"] = json!({ "phase": "Pending" }));
    cluster
        .settle()
        .is_complete()
        .condition(READY, False, "NotBound")
        .condition_says(READY, "of the storage class fast has no volume yet")
        .condition("Ready", False, "InProgress");
}

#[test]
fn claim_that_cannot_be_used_stops_the_server_and_says_why() {
    let mut retained = claim("mine");
    retained["metadata"]["labels"] = json!({ "innkeeper.dev/retained-for": "0123" });
    let mut old = claim("mine");
    old["metadata"]["labels"] = json!({ "innkeeper.dev/kept-for": "0123" });
    let mut owned = claim("mine");
    owned["metadata"]["ownerReferences"] = json!([{ "kind": "MySQL", "name": "payroll" }]);
    let mut going = claim("mine");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut lost = claim("mine");
    lost["status"]["phase"] = json!("Lost");
    for (found, reason, text) in [
        (None, "ClaimMissing", "there is no PersistentVolumeClaim mine"),
        (Some(retained), "ClaimOfAnother", "belongs to the custom resource that created it"),
        (Some(old), "ClaimOfAnother", "belongs to"),
        (Some(owned), "ClaimOfAnother", "belongs to MySQL payroll"),
        (Some(going), "ClaimTerminating", "is being deleted"),
        (Some(lost), "ClaimLost", "does not exist any more"),
    ] {
        for [storage, backup] in [
            [json!({ "claimName": "mine" }), json!({})],
            [json!({}), json!({ "claimName": "mine" })],
        ] {
            let mut scenario = given(primary(&storage, &backup));
            if let Some(found) = found.clone() {
                scenario = scenario.with_object(found);
            }
            let run = scenario.run();
            run.is_partial()
                .desires_objects(0)
                .condition(READY, False, reason)
                .condition(PERSISTENT, Unknown, "NoVolumes")
                .condition("Ready", False, reason)
                .condition_says("Ready", text);
        }
    }
}

#[test]
fn storage_that_contradicts_itself_or_has_no_name_of_a_claim_is_refused() {
    for (storage, backup, reason) in [
        (json!({ "claimName": "a", "ephemeral": true }), json!({}), "StorageContradicts"),
        (json!({ "claimName": "a", "className": "b" }), json!({}), "StorageContradicts"),
        (json!({ "className": "b", "ephemeral": true }), json!({}), "StorageContradicts"),
        (json!({}), json!({ "claimName": "a", "className": "b" }), "StorageContradicts"),
        (json!({ "claimName": "../etc" }), json!({}), "InvalidClaimName"),
        (json!({ "claimName": "a/b" }), json!({}), "InvalidClaimName"),
        (json!({}), json!({ "claimName": ".." }), "InvalidClaimName"),
        (json!({}), json!({ "claimName": "A b\u{0}" }), "InvalidClaimName"),
        (json!({}), json!({ "claimName": "" }), "InvalidClaimName"),
        (json!({ "claimName": "mine" }), json!({ "claimName": "mine" }), "SameClaim"),
        (json!({ "claimName": BACKUPS }), json!({}), "ClaimMissing"),
        (json!({}), json!({ "claimName": DATA }), "ClaimMissing"),
    ] {
        let run = given(primary(&storage, &backup)).with_object(claim("mine")).run();
        run.is_partial().desires_objects(0).condition("Ready", False, reason);
    }
}

#[test]
fn running_server_keeps_its_volumes_when_the_spec_becomes_invalid() {
    let mut cluster = settled(sample(), &[]);
    cluster.edit(|one| one["spec"]["storage"]["claimName"] = json!("missing"));
    // The data would not move either: the claim in use comes first.
    cluster.settle().condition(READY, False, "ClaimInUse");
    cluster.edit(|one| one["spec"]["storage"] = json!({ "claimName": "a", "ephemeral": true }));
    cluster.settle().is_partial().condition("Ready", False, "StorageContradicts");
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);
}

#[test]
fn data_stays_on_its_claim_until_the_user_allows_leaving_it() {
    let mut cluster = settled(sample(), &["mine", "shared"]);
    for (storage, backup) in [
        (json!({ "ephemeral": true }), json!({})),
        (json!({ "claimName": "mine" }), json!({})),
        (json!({}), json!({ "claimName": "shared" })),
    ] {
        cluster.edit(|one| {
            one["spec"]["storage"] = storage;
            one["spec"]["backup"] = backup;
        });
        cluster
            .settle()
            .is_complete()
            .condition(READY, False, "ClaimInUse")
            .condition(PERSISTENT, True, "OnClaim")
            .condition_says(
                READY,
                &format!("kubectl annotate pg {NAME} {LEAVE_ANNOTATION}=foodb-"),
            );
        assert_eq!(deployed(&cluster), [DATA, BACKUPS]);
    }

    // Data that leaves its claim comes back from the backups, so these stay.
    cluster.edit(|one| {
        one["spec"]["storage"] = json!({ "ephemeral": true });
        one["metadata"]["annotations"] = json!({ LEAVE_ANNOTATION: format!("{DATA}, {BACKUPS}") });
    });
    cluster.settle().condition(PERSISTENT, False, "InPod").condition(READY, False, "ClaimInUse");
    assert_eq!(deployed(&cluster), [Value::Null, json!(BACKUPS)]);
    assert!(cluster.has::<PersistentVolumeClaim>(DATA), "the claim that is left stays");
    assert!(cluster.has::<PersistentVolumeClaim>(BACKUPS));
}

#[test]
fn claim_that_is_left_stays_with_the_policy_delete_too() {
    let mut spec = sample();
    spec["spec"]["deletionPolicy"] = json!("Delete");
    let mut cluster = settled(spec, &["mine"]);
    cluster.edit(|one| {
        one["spec"]["storage"] = json!({ "claimName": "mine" });
        one["metadata"]["annotations"] = json!({ LEAVE_ANNOTATION: DATA });
    });
    cluster.settle().is_complete().keeps::<PersistentVolumeClaim>(DATA);
    assert_eq!(deployed(&cluster), ["mine", BACKUPS]);
    assert!(cluster.has::<PersistentVolumeClaim>(DATA));
    cluster.delete();
    assert!(cluster.has::<PersistentVolumeClaim>("mine"), "an existing claim is never deleted");
}

#[test]
fn deleted_claim_may_be_left_without_the_annotation() {
    let mut cluster = settled(sample(), &[]);
    cluster.edit(|one| one["spec"]["storage"]["ephemeral"] = json!(true));
    cluster.change::<PersistentVolumeClaim>(DATA, |claim| {
        claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    cluster.settle().condition(PERSISTENT, False, "InPod");
}

#[test]
fn retained_claim_of_the_same_identity_is_not_passed_over() {
    let mut retained = claim(DATA);
    retained["metadata"]["labels"] = json!({ "innkeeper.dev/retained-for": "0123" });
    let run = given(primary(&json!({ "ephemeral": true }), &json!({}))).with_object(retained).run();
    run.condition(READY, False, "ClaimInUse").desires::<PersistentVolumeClaim>(DATA);
    assert_eq!(claims_of(&run), [DATA, BACKUPS]);
}

#[test]
fn claim_of_another_owner_with_the_name_of_its_own_is_not_made_by_the_guest() {
    let owner = |kind: &str, uid: &str| {
        let mut claim = claim(DATA);
        claim["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": kind, "name": NAME, "uid": uid }]);
        claim
    };
    let run = |claim: Value| {
        let mut spec = primary(&json!({ "ephemeral": true }), &json!({}));
        spec["metadata"]["uid"] = json!("0a");
        given(spec).with_object(claim).run()
    };
    for (kind, uid) in [("StatefulSet", "0b"), ("PostgreSQL", "0b"), ("StatefulSet", "")] {
        let run = run(owner(kind, uid));
        run.condition(PERSISTENT, False, "InPod").does_not_desire::<PersistentVolumeClaim>(DATA);
    }
    run(owner("PostgreSQL", "0a")).condition(READY, False, "ClaimInUse");
}

#[test]
fn ephemeral_data_may_move_to_a_claim() {
    let mut cluster = settled(primary(&json!({ "ephemeral": true }), &json!({})), &[]);
    cluster.edit(|one| one["spec"]["storage"] = json!({}));
    cluster.settle().is_complete().condition(PERSISTENT, True, "OnClaim");
    assert_eq!(deployed(&cluster), [DATA, BACKUPS]);
}

#[test]
fn changed_class_leaves_the_claim_as_it_is_and_says_what_to_do() {
    let mut cluster = settled(primary(&json!({ "className": "fast" }), &json!({})), &[]);
    binds(&mut cluster, DATA, "fast");
    binds(&mut cluster, BACKUPS, "fast");
    cluster.settle().condition(READY, True, "Bound");
    cluster.edit(|one| one["spec"]["storage"]["className"] = json!("faster"));
    cluster
        .settle()
        .is_complete()
        .condition(READY, False, "ClassUnchanged")
        .condition_says(READY, "has the storage class fast, which cannot change to faster")
        .condition_says(READY, "kubectl delete pvc foodb-data");
    for name in [DATA, BACKUPS] {
        assert_eq!(
            cluster.object::<PersistentVolumeClaim>(name)["spec"]["storageClassName"],
            "fast"
        );
    }
}

#[test]
fn claim_keeps_its_class_when_the_spec_has_none_any_more() {
    let classes = [json!({ "className": "fast" }), json!({ "className": "cheap" })];
    let mut cluster = settled(primary(&classes[0], &classes[1]), &[]);
    binds(&mut cluster, DATA, "fast");
    binds(&mut cluster, BACKUPS, "cheap");
    cluster.settle().condition(READY, True, "Bound");
    cluster.edit(|one| {
        one["spec"]["storage"] = json!({});
        one["spec"]["backup"] = json!({});
    });
    let run = cluster.settle();
    run.is_complete().condition(READY, True, "Bound");
    run.desires::<PersistentVolumeClaim>(DATA).with("/spec/storageClassName", "fast");
    run.desires::<PersistentVolumeClaim>(BACKUPS).with("/spec/storageClassName", "cheap");
}

#[test]
fn own_claim_by_its_name_stays_its_own() {
    let mut cluster = settled(sample(), &[]);
    cluster.edit(|one| one["spec"]["storage"]["claimName"] = json!(DATA));
    cluster.settle().is_complete().desires::<PersistentVolumeClaim>(DATA).policy(Policy::Orphan);
}

#[test]
fn ready_says_why_prepare_failed_until_a_pod_is_prepared() {
    let text = "prepare: the volume at /data belongs to another";
    let ended = |code: i32, message: &str| json!({ "terminated": { "exitCode": code, "message": message } });
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let pod = |state: &Value, last: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "foodb-x", "labels": { "name": NAME } },
            "status": { "initContainerStatuses": [
                { "name": "prepare", "state": state, "lastState": last },
            ] },
        })
    };
    let ready = |state: &Value, last: &Value| given(sample()).with_object(pod(state, last)).run();
    for (state, last) in [(ended(1, text), json!({})), (waiting.clone(), ended(1, text))] {
        ready(&state, &last)
            .is_complete()
            .condition("Ready", False, "PrepareFailed")
            .condition_says("Ready", text);
    }
    for (state, last) in [(ended(0, ""), ended(1, text)), (ended(1, ""), json!({}))] {
        ready(&state, &last).condition("Ready", False, "InProgress");
    }
    let long = format!("{}\u{1b}[2J\n{}", "x".repeat(10), "y".repeat(5000));
    ready(&ended(1, &long), &json!({})).condition_says("Ready", "xxxxxxxxxx [2J yyy");
}

#[test]
fn run_is_retried_when_claims_cannot_be_read() {
    let run = given(sample()).deny_reads::<PersistentVolumeClaim>().run();
    run.failed_because("Unreadable");
    assert!(!run.failure().unwrap().permanent);
}
