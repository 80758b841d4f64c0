//! The node of a database fails for good, with the volume of the data. The volume of the
//! backups survives it. After the steps of guests/postgres/README.md another node has the newest
//! backup, and the product says since when rows are lost. Needs root; `cargo xtask test` runs it.

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::database::{APPLY, Database, LONG, NAME, NAMESPACE, POSTGRESQL};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, Options, condition, eventually, name_of};

/// The node that fails.
const NODE: &str = "node-2";
/// Its folder that holds the data.
const FOLDER: &str = "/var/lib/volumes/data";

/// A volume on the disk of the node that fails, and one in the folder that all nodes see.
const VOLUMES: &str = r#"
apiVersion: v1
kind: PersistentVolume
metadata: { name: local-data }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  claimRef: { namespace: default, name: foodb-data }
  local: { path: /var/lib/volumes/data }
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{ key: kubernetes.io/hostname, operator: In, values: [node-2] }]
---
apiVersion: v1
kind: PersistentVolume
metadata: { name: network-backups }
spec:
  capacity: { storage: 1Gi }
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  claimRef: { namespace: default, name: foodb-backups }
  hostPath: { path: /run/shared/backups, type: DirectoryOrCreate }
"#;

/// What an administrator does who knows that the node is off (guests/postgres/README.md).
const STEPS: [&str; 3] = [
    "kubectl taint node node-2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    "kubectl delete pvc foodb-data --wait=false",
    "kubectl delete pv local-data --wait=false",
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn database_of_a_lost_node_is_restored_on_another_and_says_since_when_rows_are_lost()
-> Result<()> {
    let mut database = on_second_node().await?;
    database.seldom(10).await?;
    let table = "CREATE TABLE hoge (id serial PRIMARY KEY, \
        written timestamptz NOT NULL DEFAULT clock_timestamp())";
    database.sql(table).await?;
    write(&database, 5).await?;
    assert!(database.back_up("before").await?);
    write(&database, 7).await?;
    let all = rows(&database).await?;
    assert_eq!(all.len(), 12);

    database.stage.lose_node()?;
    let admin = &database.stage.admin;
    let is_lost = |node: &serde_json::Value| condition(node, "Ready") == Some("Unknown");
    admin.until("the node is not ready", LONG, (Kind::NODE, "", NODE), is_lost).await?;
    for step in STEPS {
        database.stage.run(step).await?;
    }
    database.until_volume().await?;
    let pod = database.pod().await?;
    assert_eq!(pod["spec"]["nodeName"], database.stage.node().name());

    // What is lost is what the product says, and nothing else.
    let at = (POSTGRESQL, NAMESPACE, NAME);
    let message = database.stage.says(at, ("Restored", "True", "FromBackup")).await?;
    let status = admin.must_get(at.0, at.1, at.2).await?["status"]["restoredFrom"].clone();
    let newest = database.backups("listed").await?.complete.pop();
    assert_eq!(status["backup"].as_str(), newest.as_deref());
    let time = status["time"].as_str().context("status.restoredFrom has no time")?;
    assert!(message.ends_with(&format!("changes after {time} are lost")), "{message}");
    let kept = kept_rows(&database, &all).await?;
    let lost: Vec<&Row> = all.iter().filter(|row| !kept.contains(row)).collect();
    assert_eq!(lost.len(), 7, "{lost:?} of {all:?}");
    let since = lost.iter().filter(|row| row.written.as_str() >= time).count();
    assert_eq!(since, lost.len(), "{lost:?} since {time}");
    has_one_event(&database).await?;

    // The database goes on there: it takes rows and backups, and the next pod says the same.
    write(&database, 1).await?;
    assert!(database.back_up("after").await?);
    database.replace_pod().await?;
    assert_eq!(rows_of_new_pod(&database).await?.len(), 6);
    let same = database.stage.says(at, ("Restored", "True", "FromBackup")).await?;
    assert_eq!(same, message);
    has_one_event(&database).await?;
    database.stage.run("kubectl delete node node-2").await?;
    database.is_undamaged().await
}

/// The sample's database, with its server and its data on the second node. All else is on the
/// first.
async fn on_second_node() -> Result<Database> {
    let grace = "--node-monitor-grace-period=30s".to_owned();
    let options = Options { controller_manager_flags: vec![grace], ..Options::default() };
    let mut stage = NodeStage::with(options).await?;
    let client = stage.client_of(NAMESPACE, "postgres:15").await?;
    let made = stage.add_node()?.command("mkdir").args(["-p", FOLDER]).status()?;
    anyhow::ensure!(made.success(), "mkdir: {made}");
    stage.admin.apply(VOLUMES).await?;
    let applied = stage.run(APPLY).await?;
    let database = Database::of(stage, client, applied).await?;
    assert_eq!(database.pod().await?["spec"]["nodeName"], NODE);
    Ok(database)
}

/// A row of the table.
#[derive(Debug, PartialEq)]
struct Row {
    id: String,
    /// When it was written, in UTC, to the second.
    written: String,
}

/// Writes rows, each in a transaction of its own.
async fn write(database: &Database, count: usize) -> Result<()> {
    for _ in 0..count {
        database.sql("INSERT INTO hoge DEFAULT VALUES").await?;
    }
    Ok(())
}

async fn rows(database: &Database) -> Result<Vec<Row>> {
    let sql = "SELECT id || ' ' || to_char(written AT TIME ZONE 'UTC', \
        'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM hoge ORDER BY id";
    let row = |line: &String| {
        let (id, written) = line.split_once(' ').context("a row has two columns")?;
        Ok(Row { id: id.to_owned(), written: written.to_owned() })
    };
    database.sql(sql).await?.iter().map(row).collect()
}

/// The rows once the Service leads to the new pod: the node follows the Service some time after the
/// pod is ready.
async fn rows_of_new_pod(database: &Database) -> Result<Vec<Row>> {
    eventually("the server answers", SOON, async || {
        Ok(rows(database).await.map_err(|error| format!("{error:#}")))
    })
    .await
}

/// The rows once the Service leads to the new pod, none of which is another than before.
async fn kept_rows(database: &Database, before: &[Row]) -> Result<Vec<Row>> {
    let kept = rows_of_new_pod(database).await?;
    assert!(kept.iter().all(|row| before.contains(row)), "{kept:?}, before {before:?}");
    Ok(kept)
}

/// That there is one Event about the restore.
async fn has_one_event(database: &Database) -> Result<()> {
    eventually("there is an Event about the restore", SOON, async || {
        let events = database.stage.admin.list(Kind::EVENT, NAMESPACE).await?;
        let found: Vec<&str> = events
            .iter()
            .filter(|event| event["reason"] == "RestoredFromBackup")
            .map(name_of)
            .collect();
        Ok(if found.len() == 1 { Ok(()) } else { Err(format!("there are {found:?}")) })
    })
    .await
}
