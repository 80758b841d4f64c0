//! A scenario of postgres with real containers, checked with psql at the Service's NodePort: what
//! was written is there after the pod is deleted, and from a scheduled backup after the volume is
//! lost; where no backup can be restored, nothing is served; and a backup of the original operator
//! is restored. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::process::Stdio;

use anyhow::Result;
use innkeeper_cluster_tests::database::{
    APPLY, Database, LONG, NAME, NAMESPACE, POSTGRESQL, Writer,
};
use innkeeper_cluster_tests::screens::Screens;
use innkeeper_cluster_tests::stage::{SOON, root};
use innkeeper_cluster_tests::{Kind, condition, eventually, name_of};
use serde_json::{Value, json};
use tokio::process::Command;

/// How often a pod is deleted under writes, unless `INNKEEPER_DELETIONS` says otherwise.
const DELETIONS: u32 = 6;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn rows_survive_a_deleted_pod_and_a_lost_volume_and_no_empty_database_replaces_them()
-> Result<()> {
    let database = Database::new().await?;
    let mut screens = Screens::new(&database.stage, "postgres", "A database that outlives its pod");
    screens.say("A database, and a backup of it each minute.");
    screens.show("cat deploy/samples/postgres.yaml").await?;
    screens.shown(APPLY, &database.applied);
    screens.say("A client that knows the Service by a port of the node.");
    rows_are_written(&database, &mut screens).await?;
    screens.say("Within a minute there is a backup, which nobody has asked for.");
    schedule_makes_a_backup(&database, &mut screens).await?;
    screens.say("The pod is deleted: another one has the rows.");
    rows_survive_a_deleted_pod(&database, &mut screens).await?;
    screens.say("A row that is in no backup.");
    late_row_is_in_no_backup(&database, &mut screens).await?;
    screens.say("The volume is lost, and the pod with it: what the backup had is there.");
    backup_replaces_a_lost_volume(&database, &mut screens).await?;
    screens
        .say("No backup can be read, and the volume is lost: there is no empty database instead.");
    no_empty_database_replaces_the_rows(&database, &mut screens).await?;
    screens.say("The original operator has left a backup of its own: its rows are there.");
    original_backup_is_restored(&database, &mut screens).await?;
    screens.end()
}

/// `psql` as a client outside of the cluster calls it.
fn psql(database: &Database) -> String {
    format!("psql {}", database.url.replace("?connect_timeout=5", ""))
}

/// The command that shows the rows.
fn ask(database: &Database) -> String {
    format!("{} -c 'SELECT * FROM hoge'", psql(database))
}

async fn rows_are_written(database: &Database, screens: &mut Screens<'_>) -> Result<()> {
    let version = screens.show(&format!("{} -c 'SELECT version()'", psql(database))).await?;
    assert!(version.contains("PostgreSQL 15."), "{version}");
    let rows = "CREATE TABLE hoge (id SERIAL, name text); \
        INSERT INTO hoge (name) VALUES ('foo'), ('bar')";
    screens.show(&format!("{} -c \"{rows}\"", psql(database))).await?;
    database.until_has(&["bar", "foo"]).await?;
    let is_ready =
        |one: &Value| condition(one, "Ready") == Some("True") && one["status"]["appReady"] == true;
    let at = (POSTGRESQL, NAMESPACE, NAME);
    database.stage.admin.until("it is ready", SOON, at, is_ready).await?;
    screens.show("kubectl get deployment,service,persistentvolumeclaim").await?;
    Ok(())
}

/// The next pod has the data, and is labelled as in the original.
async fn rows_survive_a_deleted_pod(database: &Database, screens: &mut Screens<'_>) -> Result<()> {
    screens.show("kubectl delete pod -l name=foodb").await?;
    let pod = database.pod().await?;
    database.until_has(&["bar", "foo"]).await?;
    let at = (Kind::POD, NAMESPACE, name_of(&pod));
    let is_labelled = |pod: &Value| pod["metadata"]["labels"]["appReady"] == "ok";
    database.stage.admin.until("it is labelled", SOON, at, is_labelled).await?;
    screens.show("kubectl get pods -L appReady -l name=foodb").await?;
    screens.show(&ask(database)).await?;
    Ok(())
}

/// The Jobs of backups, each of which the schedule has made: its uid, and whether it has succeeded.
async fn scheduled(database: &Database) -> Result<Vec<(String, bool)>> {
    const AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    let jobs = database.stage.admin.list(Kind::JOB, NAMESPACE).await?;
    jobs.iter()
        .map(|job| {
            let metadata = &job["metadata"];
            anyhow::ensure!(metadata["ownerReferences"][0]["name"] == "foodb-backup", "{job:#}");
            anyhow::ensure!(metadata["annotations"][AT].is_string(), "{job:#}");
            let uid = metadata["uid"].as_str().unwrap_or_default();
            Ok((uid.to_owned(), job["status"]["succeeded"] == 1))
        })
        .collect()
}

/// Waits for a backup that began after the rows were written, without starting one.
async fn schedule_makes_a_backup(database: &Database, screens: &mut Screens<'_>) -> Result<()> {
    let before = scheduled(database).await?;
    eventually("the schedule of each minute has made a backup", SOON, async || {
        let now = scheduled(database).await?;
        let is_new = |uid: &str| before.iter().all(|(known, _)| known != uid);
        Ok(if now.iter().any(|(uid, succeeded)| *succeeded && is_new(uid)) {
            Ok(())
        } else {
            Err(format!("before {before:?}, now {now:?}"))
        })
    })
    .await?;
    let is_reported = |one: &Value| condition(one, "BackedUp") == Some("True");
    let at = (POSTGRESQL, NAMESPACE, NAME);
    database.stage.admin.until("the backup is reported", SOON, at, is_reported).await?;
    screens.show("kubectl get postgresql").await?;
    Ok(())
}

async fn late_row_is_in_no_backup(database: &Database, screens: &mut Screens<'_>) -> Result<()> {
    database.seldom(10).await?;
    let late = "INSERT INTO hoge (name) VALUES ('late')";
    screens.show(&format!("{} -c \"{late}\"", psql(database))).await?;
    database.until_has(&["bar", "foo", "late"]).await
}

/// What the last backup had is there, and nothing else.
async fn backup_replaces_a_lost_volume(
    database: &Database,
    screens: &mut Screens<'_>,
) -> Result<()> {
    screens.show("kubectl delete persistentvolumeclaim foodb-data --wait=false").await?;
    screens.show("kubectl delete pod -l name=foodb").await?;
    database.until_volume().await?;
    database.until_has(&["bar", "foo"]).await?;
    screens.show(&ask(database)).await?;
    let logs = "kubectl logs deployment/foodb -c prepare | grep prepare:";
    assert!(screens.show(logs).await?.contains("restored from"));
    database.is_undamaged().await
}

async fn no_empty_database_replaces_the_rows(
    database: &Database,
    screens: &mut Screens<'_>,
) -> Result<()> {
    let vandal = "for dump in /backups/*.dump; do echo broken > $dump; done";
    database.in_backups("vandal", vandal).await?;
    database.lose_volume().await?;
    let refused = "the server does not start with an empty database";
    let pod = database.until_prepare_says(refused, &["--previous"]).await?;
    screens.show(&format!("kubectl logs {pod} -c prepare --previous | tail -n 1")).await?;
    assert!(database.sql("SELECT 1").await.is_err());
    Ok(())
}

/// A backup as the original operator wrote it.
const ORIGINAL: &str = "guests/postgres/tests/scripts/original.sql";
/// The commands of guests/postgres/README.md that restore it, after the one that creates a pod.
const COMMANDS: [&str; 7] = [
    "kubectl wait pod foodb-copy --for condition=Ready --timeout 5m",
    "kubectl exec -i foodb-copy -- sh -c 'cat >/backups/foodb.sql' <backup/foodb.sql",
    "kubectl delete persistentvolumeclaim foodb-data --wait=false",
    "kubectl delete pod -l name=foodb",
    "kubectl wait pod -l name=foodb --for condition=Ready --timeout 5m",
    "kubectl logs deployment/foodb -c prepare | grep prepare:",
    "kubectl delete pod foodb-copy",
];

/// Runs the commands of the README with the original's file.
async fn original_backup_is_restored(database: &Database, screens: &mut Screens<'_>) -> Result<()> {
    let readme = std::fs::read_to_string(root().join("guests/postgres/README.md"))?;
    let pod = readme
        .split("```")
        .filter_map(|block| block.split_once("kubectl apply -f - <<'EOF'\n"))
        .filter_map(|(_, rest)| Some(rest.split_once("\nEOF\n")?.0))
        .find(|pod| pod.contains("name: foodb-copy"))
        .map(str::to_owned);
    let pod = pod.ok_or_else(|| anyhow::anyhow!("the README has no pod for the copy"))?;
    for command in COMMANDS {
        assert!(readme.contains(&format!("\n{command}\n")), "the README lacks `{command}`");
    }
    let folder = database.stage.folder().join("backup");
    std::fs::create_dir(&folder)?;
    std::fs::copy(root().join(ORIGINAL), folder.join("foodb.sql"))?;
    screens.show(&format!("kubectl apply -f - <<'EOF'\n{pod}\nEOF")).await?;
    for command in COMMANDS {
        let printed = screens.show(command).await?;
        let restores = command.contains("kubectl logs");
        assert_eq!(printed.contains("restored from foodb.sql"), restores, "{printed}");
    }
    database.until_has(&["bar", "foo"]).await?;
    screens.show(&ask(database)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn server_stops_with_clients_connected_and_never_runs_twice_and_a_bad_dump_is_discarded()
-> Result<()> {
    let database = Database::new().await?;
    let (admin, ns) = (&database.stage.admin, NAMESPACE);
    database.seldom(2).await?;
    database.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo')").await?;

    // A client that would stay for an hour is sent away.
    let stay = ["psql", "-X", "-c", "SELECT pg_sleep(3600)", &database.url];
    let mut client = Command::from(database.client.command(&stay))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
    eventually("the client sleeps", SOON, async || {
        let count = database.sql(sleeps).await?;
        Ok(if count == ["1"] { Ok(()) } else { Err(format!("{count:?}")) })
    })
    .await?;
    let pod = database.replace_pod().await?;
    assert!(!client.wait().await?.success());
    database.until_has(&["foo"]).await?;

    // A server that does not end keeps the next one waiting; then that one has its rows.
    let old = name_of(&pod);
    database.signal(old, "STOP").await?;
    admin.delete(Kind::POD, ns, old).await?;
    let next =
        database.until_prepare_says("waiting for the process that holds the lock of", &[]).await?;
    assert_ne!(old, next);
    let waiting = admin.must_get(Kind::POD, ns, &next).await?;
    let prepare = &waiting["status"]["initContainerStatuses"][0]["state"];
    assert!(prepare["running"].is_object(), "{prepare}");
    database.signal(old, "CONT").await?;
    admin.until_gone(LONG, (Kind::POD, ns, old)).await?;
    database.pod().await?;
    database.until_has(&["foo"]).await?;
    database.is_undamaged().await?;

    // Kept are as many as asked for; a dump without tables throws none of them away.
    for name in ["one", "two", "three"] {
        assert!(database.back_up(name).await?, "{name}");
    }
    let kept = database.backups("listed").await?.complete;
    assert_eq!(kept.len(), 2, "{kept:?}");
    database.sql("DROP TABLE hoge").await?;
    assert!(!database.back_up("empty").await?);
    assert_eq!(database.backups("unchanged").await?.complete, kept);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn acknowledged_writes_survive_repeated_pod_deletions() -> Result<()> {
    let deletions = match std::env::var("INNKEEPER_DELETIONS") {
        Ok(number) => number.parse()?,
        Err(_) => DELETIONS,
    };
    let mut database = Database::new().await?;
    database.seldom(10).await?;
    database.sql("CREATE TABLE log (n bigint PRIMARY KEY)").await?;
    let writer = Writer::start(&database).await?;
    for deletion in 0..deletions {
        writer.goes_on(&database).await?;
        if deletion % 2 == 0 {
            database.replace_pod().await?;
        } else {
            database.delete_by_force(name_of(&database.pod().await?)).await?;
            database.pod().await?;
        }
    }

    // The kubelet dies and comes back: what runs goes on, and what was asked of it before is done.
    writer.goes_on(&database).await?;
    let before = database.pod().await?;
    database.stage.node_mut().restart_kubelet()?;
    writer.goes_on(&database).await?;
    let after = database.pod().await?;
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"], "the same pod");
    let restarts = &after["status"]["containerStatuses"][0]["restartCount"];
    assert_eq!(*restarts, 0, "its server was not restarted");
    let at = (Kind::POD, NAMESPACE, name_of(&after));
    database.stage.admin.delete(at.0, at.1, at.2).await?;
    database.stage.node_mut().restart_kubelet()?;
    database.stage.admin.until_gone(LONG, at).await?;
    writer.goes_on(&database).await?;

    // Nobody has to be there who would do something about it.
    database.stage.scale_hosts(0).await?;
    database.replace_pod().await?;
    writer.goes_on(&database).await?;
    database.stage.scale_hosts(2).await?;

    let seen = writer.end(&database).await?;
    let acknowledged = &seen.acknowledged;
    assert!(acknowledged.len() > deletions as usize * 3, "{}", acknowledged.len());
    let found: Vec<u64> =
        database.sql("SELECT n FROM log").await?.iter().map(|row| row.parse().unwrap()).collect();
    let missing: Vec<_> = acknowledged.iter().filter(|n| !found.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?} of {} are missing", acknowledged.len());
    seen.never_less()?;
    database.is_undamaged().await?;
    changed_password(&database).await
}

/// Another password: the server takes it, and the old one no more.
async fn changed_password(database: &Database) -> Result<()> {
    let secret = json!({"stringData": {"postgresql_password": "another"}});
    let admin = &database.stage.admin;
    admin.merge(Kind::SECRET, NAMESPACE, "foodb-password", "kubectl-edit", &secret).await?;
    let url = database.url.replace("mypassword", "another");
    eventually("the new password is taken", LONG, async || {
        let ask = ["psql", "-X", "-q", "-A", "-t", "-c", "SELECT count(*) > 0 FROM log", &url];
        Ok(match database.client.run(&ask).await {
            Ok(answer) if answer.trim() == "t" => Ok(()),
            Ok(answer) => Err(answer),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    let refused = database.sql("SELECT 1").await.unwrap_err();
    assert!(format!("{refused:#}").contains("password authentication failed"), "{refused:#}");
    Ok(())
}
