//! The Secret with the password, which comes and goes.

use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Host, Kind, Stage};
use serde_json::{Value, json};

use crate::stage::{
    ALL, KEPT_FOR, NAME, OLD, OLD_SECRET, POSTGRESQL, SAMPLE, SECRET, claims, is_owned, made,
    stage, synced,
};

fn digest(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["metadata"]["annotations"]["exp.wheel.jp/password-digest"]
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
