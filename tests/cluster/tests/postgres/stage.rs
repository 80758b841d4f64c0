//! The module postgres on a real API server, and what its tests wait for.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Host, Kind, Stage};
use serde_json::{Value, json};

pub(crate) const POSTGRESQL: Kind = Kind::new("exp.wheel.jp/v1", "PostgreSQL");
pub(crate) const SAMPLE: &str = include_str!("../../../../deploy/samples/postgres.yaml");
pub(crate) const NAME: &str = "foodb";
pub(crate) const CLAIMS: [&str; 2] = ["foodb-data", "foodb-backups"];
pub(crate) const SECRET: &str = "foodb-password";
pub(crate) const KEPT_FOR: &str = "innkeeper.dev/retained-for";

/// As users of the original operator have it.
pub(crate) const OLD: &str = "
apiVersion: exp.wheel.jp/v1
kind: PostgreSQL
metadata:
  name: foodb
spec:
  db: foo
  user: foo
  password: foodb-password
";

pub(crate) const OLD_SECRET: &str = "
apiVersion: v1
kind: Secret
metadata:
  name: foodb-password
data:
  postgresql_password: bXlwYXNzd29yZA==
";

/// A stage with the module serving, and a namespace.
pub(crate) async fn stage() -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    stage.module("postgres", "postgres", &json!({"allowedCRDGroups": ["exp.wheel.jp"]})).await?;
    let host = stage.host().await?;
    stage.ready("postgres").await?;
    let namespace = stage.admin.namespace("data").await?;
    Ok((stage, host, namespace))
}

/// Waits until all that a `PostgreSQL` wants now is applied and reported. Before the host has seen
/// the Secret that was applied with it, it wants no Deployment.
pub(crate) async fn synced(stage: &Stage, namespace: &str) -> Result<Value> {
    let server = (Kind::DEPLOYMENT, namespace, NAME);
    stage.admin.until("the Deployment is there", SOON, server, |_| true).await?;
    stage.synced((POSTGRESQL, namespace, NAME)).await
}

pub(crate) fn is_owned(object: &Value) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0];
    owner["kind"] == "PostgreSQL" && owner["name"] == NAME && owner["controller"] == true
}

/// What the guest made in a namespace, by kind and name; of the scripts' name the beginning.
pub(crate) async fn made(admin: &Admin, ns: &str) -> Result<Vec<String>> {
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

pub(crate) const ALL: [&str; 6] = [
    "ConfigMap foodb-scripts-",
    "CronJob foodb-backup",
    "Deployment foodb",
    "PersistentVolumeClaim foodb-backups",
    "PersistentVolumeClaim foodb-data",
    "Service foodb",
];

/// The claims of a namespace.
pub(crate) async fn claims(admin: &Admin, ns: &str) -> Result<[Value; 2]> {
    let [data, backups] = CLAIMS;
    Ok([
        admin.must_get(Kind::CLAIM, ns, data).await?,
        admin.must_get(Kind::CLAIM, ns, backups).await?,
    ])
}

/// Deletes the `PostgreSQL`, and waits until all goes that it owned.
pub(crate) async fn delete(admin: &Admin, ns: &str) -> Result<()> {
    admin.delete(POSTGRESQL, ns, NAME).await?;
    admin.until_gone(SOON, (POSTGRESQL, ns, NAME)).await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        admin.until_gone(2 * SOON, (kind, ns, NAME)).await?;
    }
    admin.until_gone(2 * SOON, (Kind::CRON_JOB, ns, "foodb-backup")).await
}
