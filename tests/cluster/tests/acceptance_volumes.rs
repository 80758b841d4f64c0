//! A database in its pod, as in the original, whose backups are on a claim of the user with the
//! original's file. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::Kind;
use innkeeper_cluster_tests::database::{Database, LONG, NAME, NAMESPACE, POSTGRESQL};
use innkeeper_cluster_tests::stage::SOON;
use serde_json::{Value, json};

const SHARED: &str = "shared";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn data_in_the_pod_comes_back_from_a_claim_that_holds_the_originals_file() -> Result<()> {
    let database = Database::new().await?;
    let admin = &database.stage.admin;
    database.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo'), ('bar')").await?;
    database.seldom(3).await?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": SHARED, "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
    admin.create(&claim.to_string()).await?;
    // As the original wrote it: plain SQL, in the root of its volume.
    let dump = format!("pg_dump --table hoge '{}' >/backups/foodb.sql", database.url);
    database.in_claim(SHARED, "original", &dump).await?;

    // The user leaves both claims for the original's choice of volumes, the backups first.
    for (claim, spec) in [
        ("foodb-backups", json!({"backup": {"claimName": SHARED}})),
        ("foodb-data", json!({"storage": {"ephemeral": true}})),
    ] {
        let change =
            json!({"metadata": {"annotations": {"exp.wheel.jp/leave-claim": claim}}, "spec": spec});
        let before = database.pod().await?;
        admin.merge(POSTGRESQL, NAMESPACE, NAME, "kubectl-edit", &change).await?;
        let at = (Kind::POD, NAMESPACE, before["metadata"]["name"].as_str().unwrap());
        admin.until_gone(LONG, at).await?;
        database.pod().await?;
    }
    database.until_prepare_says("restored from backup/foodb.sql", &[]).await?;
    database.until_has(&["bar", "foo"]).await?;
    let says = |type_: &'static str, status: &'static str| {
        move |one: &Value| innkeeper_cluster_tests::condition(one, type_) == Some(status)
    };
    let at = (POSTGRESQL, NAMESPACE, NAME);
    admin.until("the data is in the pod", SOON, at, says("DataPersistent", "False")).await?;

    // What was backed up comes back, and later rows do not.
    assert!(database.back_up("first").await?);
    database.sql("INSERT INTO hoge VALUES ('late')").await?;
    database.replace_pod().await?;
    database.until_prepare_says("restored from 0000000001-", &[]).await?;
    database.until_has(&["bar", "foo"]).await?;

    // A restarted container keeps its rows.
    database.sql("INSERT INTO hoge VALUES ('kept')").await?;
    let pod = database.pod().await?;
    let name = pod["metadata"]["name"].as_str().unwrap();
    database.signal(name, "INT").await?;
    database.until_has(&["bar", "foo", "kept"]).await?;

    let listed = database.in_claim(SHARED, "listed", "cd /backups; ls . foodb.backups").await?;
    assert!(listed.contains("foodb.sql") && listed.contains("0000000001-"), "{listed}");
    Ok(())
}
