//! The story of postgres with real containers, told with psql at the Service's NodePort: what was
//! written is there after the pod is deleted, and from a backup after the volume is lost; where no
//! backup can be restored, nothing is served. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, bail};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Client, Host, Kind, NodeStage, eventually, kubelet};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

const POSTGRESQL: Kind = Kind::new("exp.wheel.jp/v1", "PostgreSQL");
const SAMPLE: &str = include_str!("../../../deploy/samples/postgres.yaml");
const NAME: &str = "foodb";
const LABEL: (&str, &str) = ("name", NAME);
const DATA: &str = "foodb-data";
/// Pods start, and a server that goes has its time.
const LONG: Duration = Duration::from_mins(3);

/// How often a pod is deleted under writes, unless `INNKEEPER_DELETIONS` says otherwise.
const DELETIONS: u32 = 6;

/// A database, and somebody with psql.
struct Story {
    stage: NodeStage,
    host: Host,
    namespace: String,
    client: Client,
    url: String,
}

impl Story {
    async fn begin() -> Result<Self> {
        let modules = [("postgres", "exp.wheel.jp")];
        let (stage, host, namespace) = NodeStage::serving(&modules).await?;
        let ns = &*namespace;
        stage.admin.apply_in(ns, SAMPLE).await?;
        let client = stage.client_of(ns, "postgres:15").await?;
        stage.until_pods_ready(ns, LABEL, 1).await?;
        let (address, port) = (stage.node().address(), stage.node_port(ns, NAME).await?);
        let url = format!("postgresql://foo:mypassword@{address}:{port}/foo?connect_timeout=5");
        Ok(Self { stage, host, namespace, client, url })
    }

    /// What the server answers, a line each row.
    async fn sql(&self, sql: &str) -> Result<Vec<String>> {
        let answer =
            self.client.run(&["psql", "-X", "-q", "-A", "-t", "-c", sql, &self.url]).await?;
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// Waits until the server answers with these rows: the Service follows a pod in a moment.
    async fn until_has(&self, rows: &[&str]) -> Result<()> {
        eventually(&format!("the rows are {rows:?}"), SOON, async || {
            Ok(match self.sql("SELECT name FROM hoge ORDER BY name").await {
                Ok(found) if found == rows => Ok(()),
                Ok(found) => bail!("the rows are {found:?}, not {rows:?}"),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// Lets only this test make backups, of which `keep` are kept.
    async fn seldom(&self, keep: u32) -> Result<()> {
        let schedule = "0 0 1 1 *";
        let backup = json!({"spec": {"backup": {"schedule": schedule, "keep": keep}}});
        let (admin, ns) = (&self.stage.admin, &*self.namespace);
        admin.merge(POSTGRESQL, ns, NAME, "kubectl-edit", &backup).await?;
        let at = (Kind::CRON_JOB, ns, "foodb-backup");
        admin.until("it is seldom", SOON, at, |one| one["spec"]["schedule"] == schedule).await?;
        // What was begun before ends before.
        eventually("no backup runs", LONG, async || {
            let jobs = admin.list(Kind::JOB, ns).await?;
            let runs = jobs.iter().filter(|job| job["status"]["completionTime"].is_null());
            let count = runs.filter(|job| job["status"]["failed"].is_null()).count();
            Ok(if count == 0 { Ok(()) } else { Err(format!("{count} run")) })
        })
        .await
    }

    /// Sends a signal to the server in a pod.
    async fn signal(&self, pod: &str, signal: &str) -> Result<()> {
        let kill = format!("kill -{signal} $(head -n 1 /data/pgdata/postmaster.pid)");
        let ns = &*self.namespace;
        let exec = ["exec", pod, "--namespace", ns, "-c", "postgres", "--", "sh", "-c", &kill];
        self.stage.kubectl_prints(&exec).await.map(drop)
    }

    /// Waits until the log of `prepare` has this, as `flags` of kubectl choose it; gives the pod.
    async fn until_prepare_says(&self, what: &str, flags: &[&str]) -> Result<String> {
        let ns = &*self.namespace;
        eventually(&format!("prepare says {what:?}"), LONG, async || {
            let pods = kubelet::pods(&self.stage.admin, ns, LABEL).await?;
            let Some(pod) = pods.first() else { return Ok(Err("there is no pod".to_owned())) };
            let name = pod["metadata"]["name"].as_str().unwrap();
            let mut logs = vec!["logs", name, "-c", "prepare", "--namespace", ns];
            logs.extend(flags);
            Ok(match self.stage.kubectl_prints(&logs).await {
                Ok(said) if said.contains(what) => Ok(name.to_owned()),
                Ok(said) => Err(said),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// A backup, now; whether it has succeeded.
    async fn back_up(&self, name: &str) -> Result<bool> {
        let ns = &*self.namespace;
        let from = ["create", "job", name, "--from=cronjob/foodb-backup", "--namespace", ns];
        self.stage.kubectl_prints(&from).await?;
        let at = (Kind::JOB, ns, name);
        let job = self
            .stage
            .admin
            .until("the backup ends", LONG, at, |job| {
                job["status"]["succeeded"] == 1 || !job["status"]["failed"].is_null()
            })
            .await?;
        Ok(job["status"]["succeeded"] == 1)
    }

    async fn pod(&self) -> Result<Value> {
        let mut pods = self.stage.until_pods_ready(&self.namespace, LABEL, 1).await?;
        Ok(pods.swap_remove(0))
    }

    /// Deletes the pod, and waits until another is ready.
    async fn replace_pod(&self) -> Result<Value> {
        let old = self.pod().await?;
        let name = old["metadata"]["name"].as_str().unwrap();
        self.stage.admin.delete(Kind::POD, &self.namespace, name).await?;
        self.stage.admin.until_gone(LONG, (Kind::POD, &self.namespace, name)).await?;
        let new = self.pod().await?;
        assert_ne!(old["metadata"]["uid"], new["metadata"]["uid"]);
        Ok(new)
    }

    /// Loses the volume of the data, and the pod with it. The operator makes another claim.
    async fn lose_volume(&self) -> Result<()> {
        let (admin, ns) = (&self.stage.admin, &*self.namespace);
        let old = admin.must_get(Kind::CLAIM, ns, DATA).await?;
        admin.delete(Kind::CLAIM, ns, DATA).await?;
        for pod in kubelet::pods(admin, ns, LABEL).await? {
            admin.delete(Kind::POD, ns, pod["metadata"]["name"].as_str().unwrap()).await?;
        }
        admin
            .until("the claim is another", LONG, (Kind::CLAIM, ns, DATA), |claim| {
                claim["metadata"]["uid"] != old["metadata"]["uid"]
                    && claim["status"]["phase"] == "Bound"
            })
            .await
            .map(drop)
    }

    /// What a script prints in a pod of this name that has the backups.
    async fn in_backups(&self, name: &str, script: &str) -> Result<String> {
        let ns = &*self.namespace;
        let pod = self.pod().await?;
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        let claim = volumes.iter().find(|one| one["name"] == "backups").unwrap();
        let yaml = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": ns},
            "spec": {"restartPolicy": "Never", "volumes": [claim], "containers": [
                {"name": name, "image": "busybox", "command": ["sh", "-c", script],
                 "volumeMounts": [{"name": "backups", "mountPath": "/backups"}]}]}});
        self.stage.admin.apply(&yaml.to_string()).await?;
        let is_done = |pod: &Value| pod["status"]["phase"] == "Succeeded";
        self.stage.admin.until("the script is done", LONG, (Kind::POD, ns, name), is_done).await?;
        self.stage.kubectl_prints(&["logs", name, "--namespace", ns]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn rows_outlive_the_pod_and_from_a_backup_the_volume_and_no_backup_is_no_empty_database()
-> Result<()> {
    let story = Story::begin().await?;
    let (admin, ns) = (&story.stage.admin, &*story.namespace);
    story.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo'), ('bar')").await?;
    story.until_has(&["bar", "foo"]).await?;

    // Deleted, the pod comes back with its data, labelled as in the original.
    let pod = story.replace_pod().await?;
    story.until_has(&["bar", "foo"]).await?;
    let at = (Kind::POD, ns, pod["metadata"]["name"].as_str().unwrap());
    admin
        .until("it is labelled", SOON, at, |pod| pod["metadata"]["labels"]["appReady"] == "ok")
        .await?;

    story.seldom(10).await?;
    assert!(story.back_up("first").await?);
    story.sql("INSERT INTO hoge VALUES ('late')").await?;
    story.until_has(&["bar", "foo", "late"]).await?;

    // The volume is lost: what the last backup had is there, and nothing else.
    story.lose_volume().await?;
    story.until_has(&["bar", "foo"]).await?;

    // No backup can be read, and the volume is lost: there is no database.
    story.in_backups("vandal", "for dump in /backups/*.dump; do echo broken > $dump; done").await?;
    story.lose_volume().await?;
    let refused = "nothing is served instead of an empty database";
    story.until_prepare_says(refused, &["--previous"]).await?;
    assert!(story.sql("SELECT 1").await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_server_ends_without_its_clients_and_never_beside_another_and_a_bad_dump_is_thrown_away()
-> Result<()> {
    let story = Story::begin().await?;
    let (admin, ns) = (&story.stage.admin, &*story.namespace);
    story.seldom(2).await?;
    story.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo')").await?;

    // A client that would stay for an hour is sent away.
    let stay = ["psql", "-X", "-c", "SELECT pg_sleep(3600)", &story.url];
    let mut client = Command::from(story.client.command(&stay))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
    eventually("the client sleeps", SOON, async || {
        let count = story.sql(sleeps).await?;
        Ok(if count == ["1"] { Ok(()) } else { Err(format!("{count:?}")) })
    })
    .await?;
    let pod = story.replace_pod().await?;
    assert!(!client.wait().await?.success());
    story.until_has(&["foo"]).await?;

    // A server that does not end keeps the next one waiting; then that one has its rows.
    let old = pod["metadata"]["name"].as_str().unwrap();
    story.signal(old, "STOP").await?;
    admin.delete(Kind::POD, ns, old).await?;
    let next = story.until_prepare_says("waits for whoever works in", &[]).await?;
    assert_ne!(old, next);
    let waiting = admin.must_get(Kind::POD, ns, &next).await?;
    let prepare = &waiting["status"]["initContainerStatuses"][0]["state"];
    assert!(prepare["running"].is_object(), "{prepare}");
    story.signal(old, "CONT").await?;
    admin.until_gone(LONG, (Kind::POD, ns, old)).await?;
    story.pod().await?;
    story.until_has(&["foo"]).await?;

    // Kept are as many as asked for; a dump without tables throws none of them away.
    for name in ["one", "two", "three"] {
        assert!(story.back_up(name).await?, "{name}");
    }
    let kept = story.in_backups("listed", "ls /backups | grep dump$").await?;
    assert_eq!(kept.lines().count(), 2, "{kept}");
    story.sql("DROP TABLE hoge").await?;
    assert!(!story.back_up("empty").await?);
    assert_eq!(story.in_backups("unchanged", "ls /backups | grep dump$").await?, kept);
    Ok(())
}

/// Somebody who writes number after number, whatever happens, and what was answered.
struct Writer {
    _process: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Writer {
    fn start(story: &Story) -> Result<Self> {
        let insert = format!(
            "psql -X -q -v ON_ERROR_STOP=1 -c \"INSERT INTO log VALUES ($n)\" '{}'",
            story.url
        );
        // It ends with the pod's file: kubectl leaves behind what it has started.
        let script = format!(
            "n=0; until [ -e /tmp/enough ]; do n=$((n+1)); {insert} 2>&1 && echo \"has $n\" || sleep 0.2; done; echo end"
        );
        let mut process = Command::from(story.client.command(&["sh", "-c", &script]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                collected.lock().unwrap().push(line);
            }
        });
        Ok(Self { _process: process, said })
    }

    /// The numbers that were acknowledged so far.
    fn acknowledged(&self) -> Vec<u64> {
        let said = self.said.lock().unwrap();
        said.iter().filter_map(|line| line.strip_prefix("has ")?.parse().ok()).collect()
    }

    /// Waits until more was acknowledged than before.
    async fn goes_on(&self) -> Result<()> {
        let before = self.acknowledged().len();
        eventually("more is written", LONG, async || {
            let now = self.acknowledged().len();
            Ok(if now > before + 3 { Ok(()) } else { Err(format!("{before}, now {now}")) })
        })
        .await
    }

    /// Ends it; gives all that was said.
    async fn end(self, story: &Story) -> Result<(Vec<u64>, Vec<String>)> {
        story.client.run(&["touch", "/tmp/enough"]).await?;
        eventually("the writer ends", LONG, async || {
            let ended = self.said.lock().unwrap().last().is_some_and(|line| line == "end");
            Ok(if ended { Ok(()) } else { Err("it still writes".to_owned()) })
        })
        .await?;
        let said = self.said.lock().unwrap().clone();
        Ok((self.acknowledged(), said))
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn what_was_acknowledged_is_there_however_often_the_pod_is_deleted_under_writes() -> Result<()>
{
    let deletions = match std::env::var("INNKEEPER_DELETIONS") {
        Ok(number) => number.parse()?,
        Err(_) => DELETIONS,
    };
    let story = Story::begin().await?;
    let (admin, ns) = (&story.stage.admin, &*story.namespace);
    story.seldom(10).await?;
    story.sql("CREATE EXTENSION amcheck; CREATE TABLE log (n bigint PRIMARY KEY)").await?;
    let writer = Writer::start(&story)?;
    for deletion in 0..deletions {
        writer.goes_on().await?;
        if deletion % 2 == 0 {
            story.replace_pod().await?;
        } else {
            // By force: nobody waits for the server's end.
            let pod = story.pod().await?;
            let name = pod["metadata"]["name"].as_str().unwrap();
            let by_force = ["--namespace", ns, "--force", "--grace-period=0"];
            story.stage.kubectl_prints(&[&["delete", "pod", name], &by_force[..]].concat()).await?;
            story.pod().await?;
        }
    }
    // Nobody has to be there who would do something about it.
    story.host.pauser()();
    story.replace_pod().await?;
    writer.goes_on().await?;
    story.host.resume();

    let (acknowledged, said) = writer.end(&story).await?;
    assert!(acknowledged.len() > deletions as usize * 3, "{}", acknowledged.len());
    let empty: Vec<_> = said.iter().filter(|line| line.contains("does not exist")).collect();
    assert!(empty.is_empty(), "a database without its data was served: {empty:?}");
    let found: BTreeSet<u64> =
        story.sql("SELECT n FROM log").await?.iter().map(|row| row.parse().unwrap()).collect();
    let missing: Vec<_> = acknowledged.iter().filter(|n| !found.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?} of {} are missing", acknowledged.len());
    let indexes = "SELECT count(bt_index_check(c.oid, true)) > 0 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relpersistence = 'p' AND i.indisvalid";
    assert_eq!(story.sql(indexes).await?, ["t"], "amcheck finds nothing wrong");
    assert_eq!(story.sql("SELECT count(*) FROM verify_heapam('log')").await?, ["0"]);

    // Another password: the server takes it, and the old one no more.
    let secret = json!({"stringData": {"postgresql_password": "another"}});
    admin.merge(Kind::SECRET, ns, "foodb-password", "kubectl-edit", &secret).await?;
    let url = story.url.replace("mypassword", "another");
    eventually("the new password is taken", LONG, async || {
        let ask = ["psql", "-X", "-q", "-A", "-t", "-c", "SELECT count(*) > 0 FROM log", &url];
        Ok(match story.client.run(&ask).await {
            Ok(answer) if answer.trim() == "t" => Ok(()),
            Ok(answer) => Err(answer),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    let refused = story.sql("SELECT 1").await.unwrap_err();
    assert!(format!("{refused:#}").contains("password authentication failed"), "{refused:#}");
    Ok(())
}
