//! The guest postgres on a real API server: the original's manifest, the Secret that comes and
//! goes, the volumes that outlive their PostgreSQL, and the original's objects.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Host, Kind, Stage, eventually, kubelet};
use serde_json::{Value, json};

const POSTGRESQL: Kind = Kind::new("exp.wheel.jp/v1", "PostgreSQL");
const SAMPLE: &str = include_str!("../../../deploy/samples/postgres.yaml");
const NAME: &str = "foodb";
const CLAIMS: [&str; 2] = ["foodb-data", "foodb-backups"];
const SECRET: &str = "foodb-password";
const KEPT_FOR: &str = "innkeeper.dev/retained-for";

/// As users of the original operator have it.
const OLD: &str = "
apiVersion: exp.wheel.jp/v1
kind: PostgreSQL
metadata:
  name: foodb
spec:
  db: foo
  user: foo
  password: foodb-password
";

const OLD_SECRET: &str = "
apiVersion: v1
kind: Secret
metadata:
  name: foodb-password
data:
  postgresql_password: bXlwYXNzd29yZA==
";

/// A stage with the module serving, and a namespace.
async fn stage() -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    stage.module("postgres", "postgres", &json!({"allowedCRDGroups": ["exp.wheel.jp"]})).await?;
    let host = stage.host().await?;
    stage.ready("postgres").await?;
    let namespace = stage.admin.namespace("data").await?;
    Ok((stage, host, namespace))
}

/// Waits until all that a `PostgreSQL` wants now is applied and reported.
async fn synced(stage: &Stage, namespace: &str) -> Result<Value> {
    stage.synced((POSTGRESQL, namespace, NAME)).await
}

fn is_owned(object: &Value) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0];
    owner["kind"] == "PostgreSQL" && owner["name"] == NAME && owner["controller"] == true
}

/// What the guest made in a namespace, by kind and name; of the scripts' name the beginning.
async fn made(admin: &Admin, ns: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for kind in [Kind::CONFIG_MAP, Kind::DEPLOYMENT, Kind::SERVICE, Kind::CLAIM, Kind::CRON_JOB] {
        for one in admin.list(kind, ns).await? {
            let name = one["metadata"]["name"].as_str().unwrap();
            if name != "kube-root-ca.crt" {
                let name = if kind == Kind::CONFIG_MAP { &name[..14] } else { name };
                all.push(format!("{} {name}", kind.kind));
            }
        }
    }
    all.sort();
    Ok(all)
}

const ALL: [&str; 6] = [
    "ConfigMap foodb-scripts-",
    "CronJob foodb-backup",
    "Deployment foodb",
    "PersistentVolumeClaim foodb-backups",
    "PersistentVolumeClaim foodb-data",
    "Service foodb",
];

fn digest(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["metadata"]["annotations"]["exp.wheel.jp/password-digest"]
}

/// The claims of a namespace.
async fn claims(admin: &Admin, ns: &str) -> Result<[Value; 2]> {
    let [data, backups] = CLAIMS;
    Ok([
        admin.must_get(Kind::CLAIM, ns, data).await?,
        admin.must_get(Kind::CLAIM, ns, backups).await?,
    ])
}

/// Deletes the `PostgreSQL`, and waits until all goes that it owned.
async fn delete(admin: &Admin, ns: &str) -> Result<()> {
    admin.delete(POSTGRESQL, ns, NAME).await?;
    admin.until_gone(SOON, (POSTGRESQL, ns, NAME)).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        admin.until_gone(2 * SOON, (kind, ns, NAME)).await?;
    }
    admin.until_gone(2 * SOON, (Kind::CRON_JOB, ns, "foodb-backup")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn original_manifest_works_unchanged_once_its_secret_exists() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);

    // First without the Secret, then with one that lacks the key: nothing is half-made.
    admin.apply_in(ns, OLD).await?;
    let message = stage.says(at, ("PasswordFound", "False", "SecretMissing")).await?;
    assert_eq!(message, "there is no Secret foodb-password");
    stage.says(at, ("Ready", "False", "SecretMissing")).await?;
    assert_eq!(made(admin, ns).await?, [] as [&str; 0]);
    admin.apply_in(ns, &OLD_SECRET.replace("postgresql_password", "another_key")).await?;
    stage.says(at, ("Ready", "False", "KeyMissing")).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    assert_eq!(made(admin, ns).await?, [] as [&str; 0]);

    admin.apply_in(ns, OLD_SECRET).await?;
    stage.says(at, ("PasswordFound", "True", "Found")).await?;
    let applied = synced(&stage, ns).await?;
    for (member, value) in [("db", "foo"), ("user", "foo"), ("password", SECRET)] {
        assert_eq!(applied["spec"][member], value);
    }
    assert_eq!(made(admin, ns).await?, ALL);
    let service = admin.must_get(Kind::SERVICE, ns, NAME).await?;
    assert_eq!(service["spec"]["type"], "NodePort");
    assert_eq!(service["spec"]["selector"], json!({"name": NAME}));
    assert_eq!(service["spec"]["ports"][0]["port"], 5432);
    let deployment = admin.must_get(Kind::DEPLOYMENT, ns, NAME).await?;
    let spec = &deployment["spec"];
    assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&json!(1), &json!("Recreate")));
    assert_eq!(spec["template"]["metadata"]["labels"], json!({"name": NAME}));
    assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 60);
    assert_eq!(spec["template"]["spec"]["initContainers"][0]["name"], "prepare");
    let job = admin.must_get(Kind::CRON_JOB, ns, "foodb-backup").await?;
    assert_eq!(job["spec"]["schedule"], "* * * * *");
    assert_eq!(job["spec"]["concurrencyPolicy"], "Forbid");
    for object in [&service, &deployment, &job] {
        assert!(is_owned(object), "{object:#}");
    }
    for claim in claims(admin, ns).await? {
        assert!(claim["metadata"]["ownerReferences"].is_null(), "{claim:#}");
        assert_eq!(claim["metadata"]["labels"][KEPT_FOR].as_str().unwrap().len(), 32);
    }

    // The sample is the same, as one file.
    let second = admin.namespace("data").await?;
    admin.apply_in(&second, SAMPLE).await?;
    synced(&stage, &second).await?;
    assert_eq!(made(admin, &second).await?, ALL);
    // Another namespace is another identity.
    let kept_for = async |ns: &str| {
        let [data, _] = claims(admin, ns).await?;
        anyhow::Ok(data["metadata"]["labels"][KEPT_FOR].clone())
    };
    assert_ne!(kept_for(ns).await?, kept_for(&second).await?);
    Ok(())
}

/// Everything that the cluster and the host say, but for Secrets.
async fn everything_visible(stage: &Stage, host: &Host, ns: &str) -> Result<String> {
    let mut texts = host.log().join("\n");
    texts += &host.http("/metrics").await?.1;
    for kind in [
        POSTGRESQL,
        Kind::CONFIG_MAP,
        Kind::DEPLOYMENT,
        Kind::SERVICE,
        Kind::CLAIM,
        Kind::CRON_JOB,
        Kind::POD,
        Kind::EVENT,
    ] {
        texts += &json!(stage.admin.list(kind, ns).await?).to_string();
    }
    texts += &json!(stage.admin.list(Kind::MODULE, "").await?).to_string();
    Ok(texts)
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_password_is_rolled_out_and_a_deleted_secret_deletes_nothing() -> Result<()> {
    let (stage, host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    admin.apply_in(ns, SAMPLE).await?;
    synced(&stage, ns).await?;
    let server = (Kind::DEPLOYMENT, ns, NAME);
    let first = digest(&admin.must_get(server.0, ns, NAME).await?).clone();
    assert!(first.as_str().is_some_and(|digest| digest.len() >= 16), "{first}");

    // Changed: the pods' template is another.
    let password = "another-password-of-foodb";
    let encoded = base64::engine::general_purpose::STANDARD.encode(password);
    admin
        .edit((Kind::SECRET, ns, SECRET), &json!({"data": {"postgresql_password": encoded}}))
        .await?;
    let is_another = |one: &Value| digest(one).is_string() && *digest(one) != first;
    let second = digest(&admin.until("it is rolled out", SOON, server, is_another).await?).clone();

    // Gone: nothing is removed, no pod is rolled out, and drift is still set back.
    let before = made(admin, ns).await?;
    admin.delete(Kind::SECRET, ns, SECRET).await?;
    stage.says(at, ("Ready", "False", "SecretMissing")).await?;
    stage.says(at, ("PasswordFound", "False", "SecretMissing")).await?;
    admin.edit(server, &json!({"spec": {"replicas": 3}})).await?;
    let one = |one: &Value| one["spec"]["replicas"] == 1;
    admin.until("one replica again", SOON, server, one).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    assert_eq!(made(admin, ns).await?, before);
    assert_eq!(*digest(&admin.must_get(server.0, ns, NAME).await?), second);

    // A host that starts while the Secret is not there does no harm either.
    let texts = everything_visible(&stage, &host, ns).await?;
    host.kill().await?;
    let host = stage.host().await?;
    stage.ready("postgres").await?;
    stage.quiet(Duration::from_secs(2)).await?;
    assert_eq!(made(admin, ns).await?, before);
    assert_eq!(*digest(&admin.must_get(server.0, ns, NAME).await?), second);

    // Back again: all is well.
    admin.apply_in(ns, OLD_SECRET).await?;
    stage.says(at, ("PasswordFound", "True", "Found")).await?;
    let is_first = |one: &Value| *digest(one) == first;
    admin.until("the first password is rolled out", SOON, server, is_first).await?;

    // The bytes of the passwords are nowhere.
    let texts = texts + &everything_visible(&stage, &host, ns).await?;
    for secret in [password, &encoded, "mypassword", "bXlwYXNzd29yZA"] {
        assert!(!texts.contains(secret), "the bytes of the Secret are visible: {secret}");
    }
    Ok(())
}

/// A class whose volumes can grow, with two volumes, which the controller manager binds.
async fn volumes(admin: &Admin) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "growing"}, "provisioner": "kubernetes.io/no-provisioner",
        "allowVolumeExpansion": true, "volumeBindingMode": "Immediate"});
    admin.apply(&class.to_string()).await?;
    for name in ["one", "two"] {
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "growing", "hostPath": {"path": format!("/nowhere/{name}")}}});
        admin.apply(&volume.to_string()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_grow_and_survive_their_postgresql_and_are_adopted_by_the_same_identity()
-> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    volumes(admin).await?;
    admin.apply_in(ns, OLD_SECRET).await?;
    admin.apply_in(ns, &of_size("1Gi")).await?;
    synced(&stage, ns).await?;
    for claim in CLAIMS {
        let bound = |one: &Value| one["status"]["phase"] == "Bound";
        admin.until("the claim is bound", SOON, (Kind::CLAIM, ns, claim), bound).await?;
    }
    let before = claims(admin, ns).await?;

    volume_grows_in_place_and_does_not_shrink(&stage, ns).await?;
    claims_stay_when_the_postgresql_is_deleted(&stage, ns, &before).await?;
    claim_of_another_identity_is_a_conflict(&stage, ns).await?;
    claims_are_adopted_by_the_same_identity(&stage, ns, &before).await?;
    policy_delete_deletes_the_claims(&stage, ns).await
}

/// The `PostgreSQL`, with volumes of this size.
fn of_size(size: &str) -> String {
    json!({"apiVersion": POSTGRESQL.api_version, "kind": POSTGRESQL.kind,
        "metadata": {"name": NAME},
        "spec": {"db": "foo", "user": "foo", "password": SECRET,
            "storage": {"size": size, "className": "growing"}}})
    .to_string()
}

async fn volume_grows_in_place_and_does_not_shrink(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    admin.apply_in(ns, &of_size("2Gi")).await?;
    let larger = |one: &Value| one["spec"]["resources"]["requests"]["storage"] == "2Gi";
    admin.until("the volume grows", SOON, (Kind::CLAIM, ns, CLAIMS[0]), larger).await?;
    synced(stage, ns).await?;
    let shrunk = admin.apply_in(ns, &of_size("1Gi")).await.map_err(|error| format!("{error:#}"));
    assert!(
        shrunk.as_ref().is_err_and(|error| error.contains("a volume cannot shrink")),
        "{shrunk:?}"
    );
    Ok(())
}

/// Data and backups stay, without an owner, and are labelled with the identity they belong to.
async fn claims_stay_when_the_postgresql_is_deleted(
    stage: &Stage,
    ns: &str,
    before: &[Value; 2],
) -> Result<()> {
    delete(&stage.admin, ns).await?;
    stage.quiet(Duration::from_secs(2)).await?;
    for (claim, before) in claims(&stage.admin, ns).await?.iter().zip(before) {
        assert_eq!(claim["metadata"]["uid"], before["metadata"]["uid"]);
        assert!(claim["metadata"]["deletionTimestamp"].is_null(), "{claim:#}");
        assert!(claim["metadata"]["ownerReferences"].is_null(), "{claim:#}");
        assert!(claim["metadata"]["labels"][KEPT_FOR].is_string(), "{claim:#}");
        assert_eq!(claim["status"]["phase"], "Bound");
    }
    Ok(())
}

async fn label_data(admin: &Admin, ns: &str, identity: &Value) -> Result<()> {
    let label = json!({"metadata": {"labels": {KEPT_FOR: identity}}});
    admin.edit((Kind::CLAIM, ns, CLAIMS[0]), &label).await.map(drop)
}

/// The claim of the data is labelled as one of another namespace would be.
async fn claim_of_another_identity_is_a_conflict(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let other = json!("0".repeat(32));
    label_data(admin, ns, &other).await?;
    admin.apply_in(ns, &of_size("2Gi")).await?;
    let at = (POSTGRESQL, ns, NAME);
    let message = stage.says(at, ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("PersistentVolumeClaim") && message.contains(CLAIMS[0]), "{message}");
    assert!(admin.get(Kind::DEPLOYMENT, ns, NAME).await?.is_none(), "nothing serves");
    let [data, _] = claims(admin, ns).await?;
    assert_eq!(data["metadata"]["labels"][KEPT_FOR], other, "left alone");
    Ok(())
}

async fn claims_are_adopted_by_the_same_identity(
    stage: &Stage,
    ns: &str,
    before: &[Value; 2],
) -> Result<()> {
    let label = &before[0]["metadata"]["labels"][KEPT_FOR];
    label_data(&stage.admin, ns, label).await?;
    synced(stage, ns).await?;
    for (claim, before) in claims(&stage.admin, ns).await?.iter().zip(before) {
        assert_eq!(claim["metadata"]["uid"], before["metadata"]["uid"], "the same volume");
        assert_eq!(claim["metadata"]["labels"][KEPT_FOR], *label);
    }
    assert_eq!(made(&stage.admin, ns).await?, ALL);
    Ok(())
}

async fn policy_delete_deletes_the_claims(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let policy = json!({"spec": {"deletionPolicy": "Delete"}});
    admin.edit((POSTGRESQL, ns, NAME), &policy).await?;
    for claim in CLAIMS {
        admin.until("it is owned", SOON, (Kind::CLAIM, ns, claim), is_owned).await?;
    }
    synced(stage, ns).await?;
    delete(admin, ns).await?;
    for claim in CLAIMS {
        admin.until_gone(2 * SOON, (Kind::CLAIM, ns, claim)).await?;
    }
    eventually("nothing is left", 2 * SOON, async || {
        let left = made(admin, ns).await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(left.join(", ")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_is_labelled_when_its_data_is_prepared_and_is_not_owned() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    admin.apply_in(ns, SAMPLE).await?;
    synced(&stage, ns).await?;
    let pod = eventually("the Deployment has a pod", SOON, async || {
        let pods = kubelet::pods(admin, ns, ("name", NAME)).await?;
        let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
        Ok(name.map(str::to_owned).ok_or_else(|| "there is none".to_owned()))
    })
    .await?;
    let ended_with = async |code: u32| {
        let container =
            json!({"terminated": {"exitCode": code, "startedAt": null, "finishedAt": null}});
        let status = json!({"phase": "Pending", "initContainerStatuses": [{"name": "prepare",
            "state": container, "ready": code == 0, "restartCount": 0, "image": "postgres:15",
            "imageID": ""}]});
        admin.merge_status(Kind::POD, ns, &pod, &json!({ "status": status })).await
    };
    let of_pod = |one: &Value, is_ready: bool| {
        one["status"]["pod"] == *pod && one["status"]["appReady"] == is_ready
    };
    admin.until("its pod is reported", SOON, at, |one| of_pod(one, false)).await?;

    // Not while `prepare` has failed.
    ended_with(1).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let seen = admin.must_get(Kind::POD, ns, &pod).await?;
    assert!(seen["metadata"]["labels"]["appReady"].is_null(), "{seen:#}");

    ended_with(0).await?;
    let labelled = |one: &Value| one["metadata"]["labels"]["appReady"] == "ok";
    let seen = admin.until("it is labelled", SOON, (Kind::POD, ns, &pod), labelled).await?;
    admin.until("and reported", SOON, at, |one| of_pod(one, true)).await?;
    let owners = seen["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!(owners[0]["kind"], "ReplicaSet", "merged onto, not owned");
    let service = admin.must_get(Kind::SERVICE, ns, NAME).await?;
    assert_eq!(service["spec"]["selector"], json!({"name": NAME}), "it informs, it does not gate");

    // Taken off by hand, it is set again; of a pod that is replaced the next one waits its turn.
    admin.edit((Kind::POD, ns, &pod), &json!({"metadata": {"labels": {"appReady": null}}})).await?;
    admin.until("it is labelled again", SOON, (Kind::POD, ns, &pod), labelled).await?;
    kubelet::runs(admin, ns, &pod).await?;
    admin.delete(Kind::POD, ns, &pod).await?;
    let is_next = |one: &Value| {
        one["status"]["pod"].as_str().is_some_and(|name| name != pod)
            && one["status"]["appReady"] == false
    };
    let next = admin.until("the next pod is reported", SOON, at, is_next).await?;
    let next = next["status"]["pod"].as_str().unwrap();
    let next = admin.must_get(Kind::POD, ns, next).await?;
    assert!(next["metadata"]["labels"]["appReady"].is_null(), "{next:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn originals_service_and_deployment_are_adopted_as_the_same_objects() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {"type": "NodePort", "selector": {"name": NAME}, "ports": [{"port": 5432}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"name": NAME}},
            "template": {"metadata": {"labels": {"name": NAME}},
                "spec": {"containers": [{"name": "postgres", "image": "postgres:latest",
                    "ports": [{"containerPort": 5432}],
                    "env": [{"name": "POSTGRES_DB", "value": "foo"},
                        {"name": "POSTGRES_USER", "value": "foo"}]}]}}}});
    let before =
        [admin.create(&service.to_string()).await?, admin.create(&deployment.to_string()).await?];
    let kinds = [Kind::SERVICE, Kind::DEPLOYMENT];
    admin.apply_in(ns, SAMPLE).await?;
    stage.says(at, ("Synced", "False", "Conflict")).await?;
    for (kind, before) in kinds.into_iter().zip(&before) {
        let now = admin.must_get(kind, ns, NAME).await?;
        assert_eq!(now["spec"], before["spec"], "left alone without a word");
        assert!(now["metadata"]["ownerReferences"].is_null());
    }
    assert!(admin.list(Kind::CLAIM, ns).await?.is_empty(), "nothing is half-made");

    admin.edit(at, &json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}})).await?;
    synced(&stage, ns).await?;
    for (kind, before) in kinds.into_iter().zip(&before) {
        let now = admin.must_get(kind, ns, NAME).await?;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "the same object");
        assert!(is_owned(&now), "{now:#}");
    }
    let server = admin.must_get(Kind::DEPLOYMENT, ns, NAME).await?;
    let port = |service: &Value| service["spec"]["ports"][0]["nodePort"].clone();
    assert_eq!(port(&admin.must_get(Kind::SERVICE, ns, NAME).await?), port(&before[0]));
    // Its strategy cannot be changed to Recreate, so it never has a pod more than wanted.
    assert_eq!(
        server["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    );
    let pod = &server["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["name"], "prepare");
    assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
    assert_eq!(pod["containers"][0]["image"], "postgres:15");
    assert_eq!(made(admin, ns).await?, ALL);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_refuses_specs_that_are_invalid_or_would_lose_data() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let crd = admin.must_get(Kind::CRD, "", "postgresqls.exp.wheel.jp").await?;
    let names = &crd["spec"]["names"];
    assert_eq!(names["singular"], "postgresql");
    assert_eq!(names["shortNames"], json!(["pg"]));
    let refused = async |manifest: &str| {
        admin.apply_in(ns, manifest).await.map_err(|error| format!("{error:#}")).unwrap_err()
    };
    for (from, to, expected) in [
        ("name: foodb\n", "name: foo.db\n", "at most 63 lower-case letters"),
        ("name: foodb\n", "name: 9db\n", "at most 63 lower-case letters"),
        ("db: foo\n", "db: template1\n", "the server keeps this name for itself"),
        ("user: foo\n", "user: pg_foo\n", "names that begin with pg_"),
        ("db: foo\n", "database: foo\n", "spec"),
        ("db: foo\n", "db: 5\n", ".spec.db: expected string"),
    ] {
        let why = refused(&OLD.replace(from, to)).await;
        assert!(why.contains(expected), "{to}: {why}");
    }
    assert!(admin.list(POSTGRESQL, ns).await?.is_empty());

    admin.apply_in(ns, OLD).await?;
    for (from, to, expected) in [
        ("db: foo\n", "db: bar\n", "the database cannot be renamed"),
        ("user: foo\n", "user: bar\n", "the user cannot be renamed"),
        (
            "db: foo\n",
            "db: foo\n  storage: {className: other}\n",
            "the class of a volume cannot be changed",
        ),
    ] {
        let why = refused(&OLD.replace(from, to)).await;
        assert!(why.contains(expected), "{to}: {why}");
    }
    Ok(())
}
