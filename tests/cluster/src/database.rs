//! A database that the guest postgres looks after, with somebody who uses it by psql at the
//! Service's NodePort.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use crate::stage::SOON;
use crate::{Kind, NodeStage, PodClient, eventually, kubelet, name_of};

/// How it is made.
pub const APPLY: &str = "kubectl apply -f deploy/samples/postgres.yaml";
/// Its kind.
pub const POSTGRESQL: Kind = Kind::new("exp.wheel.jp/v1", "PostgreSQL");
/// Its name.
pub const NAME: &str = "foodb";
/// Its namespace.
pub const NAMESPACE: &str = "default";
/// Pods start, and a server that goes has its time.
pub const LONG: Duration = Duration::from_mins(6);

const LABEL: (&str, &str) = ("name", NAME);
const DATA: &str = "foodb-data";
const WRITER: &str = "writer";
/// Whether an index or a table is damaged; each gives one row.
const INDEXES: &str = "SELECT count(bt_index_check(c.oid, true)) > 0 FROM pg_index i \
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam \
    WHERE a.amname = 'btree' AND c.relpersistence = 'p' AND i.indisvalid";
const TABLES: &str = "SELECT count(*) FROM pg_class c, LATERAL verify_heapam(c.oid) \
    WHERE c.relkind = 'r' AND c.relpersistence = 'p'";

/// A database, and somebody with psql.
pub struct Database {
    /// Where it is.
    pub stage: NodeStage,
    /// A pod that has psql.
    pub client: PodClient,
    /// Its address, with user and password.
    pub url: String,
    /// What [`APPLY`] printed.
    pub applied: String,
}

impl Database {
    /// The database of the sample, on a stage of its own, with the extension that looks for damage.
    ///
    /// # Errors
    /// If the stage does not start, or the database does not answer in time.
    pub async fn new() -> Result<Self> {
        let stage = NodeStage::new().await?;
        let applied = stage.run(APPLY).await?;
        let client = stage.client_of(NAMESPACE, "postgres:15").await?;
        Self::of(stage, client, applied).await
    }

    /// The database that [`APPLY`], which has printed `applied`, has made on a stage, with a client
    /// there.
    ///
    /// # Errors
    /// If its pod does not get ready, or the server does not answer in time.
    pub async fn of(stage: NodeStage, client: PodClient, applied: String) -> Result<Self> {
        stage.until_pods_ready(NAMESPACE, LABEL, 1).await?;
        let (address, port) = (stage.node().address(), stage.node_port(NAMESPACE, NAME).await?);
        // A person who types `psql` has it in that pod.
        stage.add_program("psql", "exec kubectl exec client -- psql -X \"$@\"")?;
        let url = format!("postgresql://foo:mypassword@{address}:{port}/foo?connect_timeout=5");
        let database = Self { stage, client, url, applied };
        eventually("the server answers", SOON, async || {
            let made = database.sql("CREATE EXTENSION amcheck").await;
            Ok(made.map(drop).map_err(|error| format!("{error:#}")))
        })
        .await?;
        Ok(database)
    }

    /// What the server answers, a line each row. Asks again if it got no connection in time:
    /// nothing was done then, and a machine may be busy.
    ///
    /// # Errors
    /// If psql does not connect in time, or the server refuses the statement.
    pub async fn sql(&self, sql: &str) -> Result<Vec<String>> {
        let ask = ["psql", "-X", "-q", "-A", "-t", "-c", sql, &self.url];
        let answer = eventually("psql is connected", SOON, async || {
            match self.client.run(&ask).await.map_err(|error| format!("{error:#}")) {
                Err(error) if error.contains("timeout expired") => Ok(Err(error)),
                Err(error) => Err(anyhow!(error)),
                Ok(answer) => Ok(Ok(answer)),
            }
        })
        .await?;
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// Waits until the server answers with these rows of the table `hoge`: the Service follows a
    /// pod in a moment.
    ///
    /// # Errors
    /// If the server answers with other rows, or with none in time.
    pub async fn until_has(&self, rows: &[&str]) -> Result<()> {
        eventually(&format!("the rows are {rows:?}"), SOON, async || {
            Ok(match self.sql("SELECT name FROM hoge ORDER BY name").await {
                Ok(found) if found == rows => Ok(()),
                Ok(found) => bail!("the rows are {found:?}, not {rows:?}"),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// Checks that neither a table nor an index is damaged.
    ///
    /// # Errors
    /// What is damaged, or why it cannot be checked.
    pub async fn is_undamaged(&self) -> Result<()> {
        let indexes = self.sql(INDEXES).await?;
        ensure!(indexes == ["t"], "no index was looked at: {indexes:?}");
        let damages = self.sql(TABLES).await?;
        ensure!(damages == ["0"], "{damages:?} tables are damaged");
        Ok(())
    }

    /// Lets only the test make backups, of which `keep` are kept.
    ///
    /// # Errors
    /// If the API server refuses the change, or a backup still runs after the time.
    pub async fn seldom(&self, keep: u32) -> Result<()> {
        let schedule = "0 0 1 1 *";
        let backup = json!({"spec": {"backup": {"schedule": schedule, "keep": keep}}});
        let admin = &self.stage.admin;
        admin.merge(POSTGRESQL, NAMESPACE, NAME, "kubectl-edit", &backup).await?;
        let at = (Kind::CRON_JOB, NAMESPACE, "foodb-backup");
        admin.until("it is seldom", SOON, at, |one| one["spec"]["schedule"] == schedule).await?;
        // What was begun before ends before.
        eventually("no backup runs", LONG, async || {
            let jobs = admin.list(Kind::JOB, NAMESPACE).await?;
            let runs = jobs.iter().filter(|job| job["status"]["completionTime"].is_null());
            let count = runs.filter(|job| job["status"]["failed"].is_null()).count();
            Ok(if count == 0 { Ok(()) } else { Err(format!("{count} run")) })
        })
        .await
    }

    /// Sends a signal to the server in a pod.
    ///
    /// # Errors
    /// If the pod has no running server.
    pub async fn signal(&self, pod: &str, signal: &str) -> Result<()> {
        let kill = format!("kill -{signal} $(head -n 1 /data/pgdata/postmaster.pid)");
        self.exec(pod, "postgres", &kill).await.map(drop)
    }

    /// What a script prints in a container of a pod.
    ///
    /// # Errors
    /// If the container does not run, or the script fails.
    pub async fn exec(&self, pod: &str, container: &str, script: &str) -> Result<String> {
        let exec =
            ["exec", pod, "--namespace", NAMESPACE, "-c", container, "--", "sh", "-c", script];
        self.stage.kubectl_prints(&exec).await
    }

    /// Waits until the log of `prepare` has this, as `flags` of kubectl choose it; gives the pod.
    ///
    /// # Errors
    /// If the log does not have it in time.
    pub async fn until_prepare_says(&self, what: &str, flags: &[&str]) -> Result<String> {
        eventually(&format!("prepare says {what:?}"), LONG, async || {
            let Some(name) = self.any_pod().await? else {
                return Ok(Err("there is no pod".to_owned()));
            };
            let mut logs = vec!["logs", &*name, "-c", "prepare", "--namespace", NAMESPACE];
            logs.extend(flags);
            Ok(match self.stage.kubectl_prints(&logs).await {
                Ok(log) if log.contains(what) => Ok(name),
                Ok(log) => Err(log),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// The name of its pod, ready or not, if there is one that is not going.
    ///
    /// # Errors
    /// If the API server does not answer, or refuses the request.
    pub async fn any_pod(&self) -> Result<Option<String>> {
        let pods = kubelet::pods(&self.stage.admin, NAMESPACE, LABEL).await?;
        Ok(pods.first().map(|pod| name_of(pod).to_owned()))
    }

    /// Begins a backup now.
    ///
    /// # Errors
    /// If the Job of this name exists, or kubectl fails otherwise.
    pub async fn begin_backup(&self, name: &str) -> Result<()> {
        let from = ["create", "job", name, "--from=cronjob/foodb-backup", "--namespace", NAMESPACE];
        self.stage.kubectl_prints(&from).await.map(drop)
    }

    /// Waits until a backup has ended; whether it has succeeded.
    ///
    /// # Errors
    /// If the backup still runs after the time.
    pub async fn ended_backup(&self, name: &str) -> Result<bool> {
        let at = (Kind::JOB, NAMESPACE, name);
        let is_over = |job: &Value| {
            job["status"]["succeeded"] == 1 || crate::condition(job, "Failed") == Some("True")
        };
        let job = self.stage.admin.until("the backup ends", LONG, at, is_over).await?;
        Ok(job["status"]["succeeded"] == 1)
    }

    /// Makes a backup now; gives whether it has succeeded.
    ///
    /// # Errors
    /// If it cannot begin, or still runs after the time.
    pub async fn back_up(&self, name: &str) -> Result<bool> {
        self.begin_backup(name).await?;
        self.ended_backup(name).await
    }

    /// Waits until its pod is ready, and gives it.
    ///
    /// # Errors
    /// If the pod is not ready in time.
    pub async fn pod(&self) -> Result<Value> {
        let mut pods = self.stage.until_pods_ready(NAMESPACE, LABEL, 1).await?;
        Ok(pods.swap_remove(0))
    }

    /// Deletes the pod, and waits until another is ready.
    ///
    /// # Errors
    /// If the old pod does not go, or the new one is not ready in time.
    pub async fn replace_pod(&self) -> Result<Value> {
        let old = self.pod().await?;
        let at = (Kind::POD, NAMESPACE, name_of(&old));
        self.stage.admin.delete(at.0, at.1, at.2).await?;
        self.stage.admin.until_gone(LONG, at).await?;
        let new = self.pod().await?;
        ensure!(old["metadata"]["uid"] != new["metadata"]["uid"], "it is the same pod");
        Ok(new)
    }

    /// Deletes a pod by force: nobody waits for the end of what runs in it.
    ///
    /// # Errors
    /// If there is no such pod, or kubectl fails otherwise.
    pub async fn delete_by_force(&self, pod: &str) -> Result<()> {
        let by_force = ["--namespace", NAMESPACE, "--force", "--grace-period=0"];
        let delete = [&["delete", "pod", pod], &by_force[..]].concat();
        self.stage.kubectl_prints(&delete).await.map(drop)
    }

    /// Loses the volume of the data, and the pod with it. The operator makes another claim.
    ///
    /// # Errors
    /// If there is no claim, or the operator makes no other one in time.
    pub async fn lose_volume(&self) -> Result<()> {
        let admin = &self.stage.admin;
        let old = admin.must_get(Kind::CLAIM, NAMESPACE, DATA).await?;
        admin.delete(Kind::CLAIM, NAMESPACE, DATA).await?;
        for pod in kubelet::pods(admin, NAMESPACE, LABEL).await? {
            admin.delete(Kind::POD, NAMESPACE, name_of(&pod)).await?;
        }
        let is_another = |claim: &Value| claim["metadata"]["uid"] != old["metadata"]["uid"];
        let at = (Kind::CLAIM, NAMESPACE, DATA);
        admin.until("the claim is another", LONG, at, is_another).await?;
        self.until_volume().await
    }

    /// Waits until the claim that holds the data is bound, and is not going.
    ///
    /// # Errors
    /// If the claim is not bound in time.
    pub async fn until_volume(&self) -> Result<()> {
        let is_bound = |claim: &Value| {
            claim["status"]["phase"] == "Bound" && claim["metadata"]["deletionTimestamp"].is_null()
        };
        let at = (Kind::CLAIM, NAMESPACE, DATA);
        self.stage.admin.until("the claim is bound", LONG, at, is_bound).await.map(drop)
    }

    /// What a script prints in a pod of this name that has the backups and the programs of
    /// PostgreSQL.
    ///
    /// # Errors
    /// If the script fails, or still runs after the time.
    pub async fn in_backups(&self, name: &str, script: &str) -> Result<String> {
        self.in_claim("foodb-backups", name, script).await
    }

    /// What a script prints in a pod of this name that has a claim at `/backups` and the programs
    /// of PostgreSQL.
    ///
    /// # Errors
    /// If the script fails, or still runs after the time.
    pub async fn in_claim(&self, claim: &str, name: &str, script: &str) -> Result<String> {
        let claim = json!({"name": "backups", "persistentVolumeClaim": {"claimName": claim}});
        let yaml = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"restartPolicy": "Never", "volumes": [claim], "containers": [
                {"name": name, "image": "postgres:15", "command": ["sh", "-e", "-c", script],
                 "volumeMounts": [{"name": "backups", "mountPath": "/backups"}]}]}});
        self.stage.admin.apply(&yaml.to_string()).await?;
        let is_over = |pod: &Value| {
            ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == **phase)
        };
        let at = (Kind::POD, NAMESPACE, name);
        let pod = self.stage.admin.until("the script is done", LONG, at, is_over).await?;
        let log = self.stage.kubectl_prints(&["logs", name, "--namespace", NAMESPACE]).await?;
        ensure!(pod["status"]["phase"] == "Succeeded", "{script}: {log}");
        Ok(log)
    }

    /// The files with the backups, as a pod of this name sees them.
    ///
    /// # Errors
    /// If the pod cannot list them.
    pub async fn backups(&self, name: &str) -> Result<Backups> {
        let listed = self.in_backups(name, "cd /backups; ls").await?;
        let mut backups = Backups { complete: Vec::new(), pieces: Vec::new() };
        for name in listed.lines() {
            if name.strip_suffix(".dump").is_some() {
                backups.complete.push(name.to_owned());
            } else if name.strip_suffix(".tmp").is_some() {
                backups.pieces.push(name.to_owned());
            }
        }
        Ok(backups)
    }
}

/// The files of backups.
#[derive(Debug, PartialEq, Eq)]
pub struct Backups {
    /// Those that are complete, the oldest first.
    pub complete: Vec<String>,
    /// What a backup leaves that is being made or was not finished.
    pub pieces: Vec<String>,
}

/// Somebody who writes number after number into the table `log`, and asks for how many there are,
/// whatever happens, and what was answered. A pod of its own, which needs nobody to go on.
pub struct Writer;

/// What a [`Writer`] has seen.
pub struct Seen {
    /// The numbers that were acknowledged.
    pub acknowledged: BTreeSet<u64>,
    /// How many numbers there were, each time that was answered.
    pub counts: Vec<u64>,
    /// What was answered that is neither, in full.
    pub refusals: Vec<String>,
}

impl Writer {
    /// Begins to write into a table that is there. It opens a connection for each number.
    ///
    /// # Errors
    /// If the API server refuses the pod, or it does not run in time.
    pub async fn start(database: &Database) -> Result<Self> {
        let psql = format!("psql -X -q -A -t -v ON_ERROR_STOP=1 '{}'", database.url);
        let script = format!(
            "n=0; until [ -e /tmp/enough ]; do n=$((n+1)); \
             {psql} -c \"INSERT INTO log VALUES ($n)\" 2>&1 && echo \"has $n\" || sleep 0.2; \
             {psql} -c \"SELECT 'count ' || count(*) FROM log\" 2>&1 || sleep 0.2; done"
        );
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": WRITER, "namespace": NAMESPACE},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": WRITER, "image": "postgres:15", "command": ["sh", "-c", script]}]}});
        database.stage.admin.apply(&pod.to_string()).await?;
        database.stage.until_ready(NAMESPACE, WRITER).await?;
        Ok(Self)
    }

    /// What the writer has seen so far.
    ///
    /// # Errors
    /// If kubectl cannot read its log.
    pub async fn seen(&self, database: &Database) -> Result<Seen> {
        let logs = ["logs", WRITER, "--namespace", NAMESPACE];
        Ok(seen(&database.stage.kubectl_prints(&logs).await?))
    }

    /// Waits until more was acknowledged than before.
    ///
    /// # Errors
    /// If no further row is acknowledged in time.
    pub async fn goes_on(&self, database: &Database) -> Result<()> {
        let mut before = None;
        eventually("more is written", LONG, async || {
            // The node may be without its kubelet, whom kubectl asks.
            let seen = match self.seen(database).await {
                Ok(seen) => seen,
                Err(error) => return Ok(Err(format!("{error:#}"))),
            };
            let (now, last) = (seen.acknowledged.len(), seen.refusals.last());
            let before = *before.get_or_insert(now);
            Ok(if now > before + 3 {
                Ok(())
            } else {
                Err(format!("{before}, now {now}; {last:?}"))
            })
        })
        .await
    }

    /// Ends the writer; gives all that it has seen.
    ///
    /// # Errors
    /// If it does not end in time, or its log cannot be read.
    pub async fn end(self, database: &Database) -> Result<Seen> {
        let (admin, at) = (&database.stage.admin, (Kind::POD, NAMESPACE, WRITER));
        // The container may end, and with it this command, before the command has ended by itself.
        let stopped = database.exec(WRITER, WRITER, "touch /tmp/enough").await;
        admin
            .until("the writer ends", LONG, at, |pod| pod["status"]["phase"] == "Succeeded")
            .await
            .with_context(|| format!("the command that stops it: {stopped:?}"))?;
        self.seen(database).await
    }
}

fn seen(text: &str) -> Seen {
    let mut seen = Seen { acknowledged: BTreeSet::new(), counts: Vec::new(), refusals: Vec::new() };
    for line in text.lines() {
        let number = |what: &str| line.strip_prefix(what).and_then(|rest| rest.parse().ok());
        if let Some(number) = number("has ") {
            seen.acknowledged.insert(number);
        } else if let Some(count) = number("count ") {
            seen.counts.push(count);
        } else {
            seen.refusals.push(line.to_owned());
        }
    }
    seen
}

impl Seen {
    /// Checks that the client saw neither the database without its table, nor fewer rows than once
    /// before.
    ///
    /// # Errors
    /// What the client saw instead.
    pub fn never_less(&self) -> Result<()> {
        self.never_less_than(0)?;
        let falls = self.counts.windows(2).find(|pair| pair[1] < pair[0]);
        ensure!(falls.is_none(), "rows were gone: {falls:?} of {:?}", self.counts);
        Ok(())
    }

    /// Checks that the client did not see the database without its table, nor fewer rows than
    /// `least` after it had seen as many.
    ///
    /// # Errors
    /// What the client saw instead.
    pub fn never_less_than(&self, least: u64) -> Result<()> {
        let empty: Vec<_> =
            self.refusals.iter().filter(|line| line.contains("does not exist")).collect();
        ensure!(empty.is_empty(), "a database without its data was served: {empty:?}");
        let mut counts = self.counts.iter().skip_while(|count| **count < least);
        let less = counts.find(|count| **count < least);
        ensure!(less.is_none(), "{less:?} rows were served, not {least}: {:?}", self.counts);
        Ok(())
    }
}
