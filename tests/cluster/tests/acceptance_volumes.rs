//! Databases that come from the original: with data in the pod and backups on a claim that has the
//! original's file, by the dump that the README describes, and from the volume of the original's
//! backup folder. Needs root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::database::{Database, LONG, NAME, NAMESPACE, POSTGRESQL};
use innkeeper_cluster_tests::readme::postgres::{
    ADOPT, ALL, CLAIM, COMPARE, COPY, DUMP, END, NAME_CLAIM,
};
use innkeeper_cluster_tests::readme::{ORIGINAL, Readme};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, NodeStage, eventually};
use serde_json::{Value, json};

const SHARED: &str = "shared";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn rows_of_the_original_come_back_from_its_file_from_a_dump_and_from_its_volume() -> Result<()>
{
    let database = Database::new().await?;
    data_in_the_pod_comes_back_from_a_claim_that_holds_the_originals_file(&database).await?;
    let original = Original::start(&database.stage).await?;
    original.dumps_to_its_volume().await?;
    original.is_handed_over_with_the_rows_of_a_dump().await?;
    original.volume_restores_a_new_postgresql_and_changes_no_other_file().await
}

async fn data_in_the_pod_comes_back_from_a_claim_that_holds_the_originals_file(
    database: &Database,
) -> Result<()> {
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

/// The namespace in which an original works, and in which the README's commands run.
const OF_ORIGINAL: &str = "original";
/// The claim of the original's backup folder.
const BACKUP_FOLDER: &str = "backup-folder";
/// A command that prints owner, mode and name of the files there.
const LIST: &str = "cd /backup; stat -c '%U %a %n' . * | sort";

/// The objects of the original for the `PostgreSQL` `foodb`, with rows.
struct Original<'a> {
    stage: &'a NodeStage,
    readme: Readme,
}

impl<'a> Original<'a> {
    /// As the original left them: without references to their `PostgreSQL`, data in the pod.
    async fn start(stage: &'a NodeStage) -> Result<Self> {
        let original = Self { stage, readme: Readme::of("postgres", ORIGINAL, &ALL)? };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": OF_ORIGINAL}});
        stage.admin.apply(&namespace.to_string()).await?;
        let account = (Kind::SERVICE_ACCOUNT, OF_ORIGINAL, "default");
        stage.admin.until("the namespace has its account", SOON, account, |_| true).await?;
        let user = format!(
            "kubectl config view --raw --flatten >user.yaml\n\
             kubectl --kubeconfig user.yaml config set-context --current --namespace {OF_ORIGINAL}"
        );
        stage.run(&user).await?;
        let labels = json!({"name": NAME});
        let env = json!([{"name": "POSTGRES_DB", "value": "foo"},
            {"name": "POSTGRES_USER", "value": "foo"},
            {"name": "POSTGRES_PASSWORD", "value": "mypassword"}]);
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": NAME},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "postgres", "image": "postgres:15", "env": env,
                            "args": ["-c", "listen_addresses=*"],
                            "ports": [{"containerPort": 5432}],
                            "volumeMounts": [
                                {"name": "data", "mountPath": "/var/lib/postgresql/data"}]}],
                        "volumes": [{"name": "data", "emptyDir": {}}]}}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
            "spec": {"type": "NodePort", "selector": labels, "ports": [{"port": 5432}]}});
        for object in [deployment, service] {
            stage.admin.apply_in(OF_ORIGINAL, &object.to_string()).await?;
        }
        original.run("kubectl apply -f deploy/samples/postgres.yaml").await?;
        stage.until_pods_ready(OF_ORIGINAL, ("name", NAME), 1).await?;
        let rows = "CREATE TABLE hoge (id SERIAL, name text); \
            INSERT INTO hoge (name) VALUES ('foo'), ('bar'), ('late')";
        // Over TCP, where only the complete database answers.
        let psql = format!(
            "kubectl exec deployment/foodb -- psql postgresql://foo:mypassword@localhost/foo \
             -c \"{rows}\""
        );
        eventually("the original has rows", SOON, async || {
            Ok(original.run(&psql).await.map(drop).map_err(|error| format!("{error:#}")))
        })
        .await?;
        let at = (POSTGRESQL, OF_ORIGINAL, NAME);
        stage.says(at, ("Synced", "False", "Conflict")).await?;
        Ok(original)
    }

    /// Runs command lines of a user whose current namespace is that of the original.
    async fn run(&self, lines: &str) -> Result<String> {
        self.stage.run(&format!("export KUBECONFIG=user.yaml\n{lines}")).await
    }

    async fn run_block(&self, beginning: &str) -> Result<String> {
        self.run(self.readme.block(beginning)?).await
    }

    /// Files of several databases, which only root can read.
    async fn dumps_to_its_volume(&self) -> Result<()> {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": BACKUP_FOLDER},
            "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}});
        let operator = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"},
            "spec": {"terminationGracePeriodSeconds": 0,
                "containers": [{"name": "operator", "image": "postgres:15",
                    "command": ["sleep", "infinity"],
                    "volumeMounts": [{"name": "backup", "mountPath": "/backup"}]}],
                "volumes": [{"name": "backup",
                    "persistentVolumeClaim": {"claimName": BACKUP_FOLDER}}]}});
        for object in [claim, operator] {
            self.stage.admin.apply_in(OF_ORIGINAL, &object.to_string()).await?;
        }
        self.stage.until_ready(OF_ORIGINAL, "operator").await?;
        let dump = "umask 077; chmod 700 /backup; for name in bardb bazdb; do \
            pg_dump postgresql://foo:mypassword@foodb/foo >/backup/$name.sql; done";
        self.in_operator(dump).await?;
        let listed = self.in_operator(LIST).await?;
        assert_eq!(listed, "root 600 bardb.sql\nroot 600 bazdb.sql\nroot 700 .\n");
        Ok(())
    }

    async fn in_operator(&self, script: &str) -> Result<String> {
        let namespace = format!("--namespace={OF_ORIGINAL}");
        let exec = ["exec", "operator", &namespace, "--", "sh", "-e", "-c", script];
        self.stage.kubectl_prints(&exec).await
    }

    /// Runs the blocks of the README's section that need containers. The module is installed
    /// already.
    async fn is_handed_over_with_the_rows_of_a_dump(&self) -> Result<()> {
        const COUNT: &str = " count \n-------\n     3\n(1 row)\n";
        let dumped = self.run_block(DUMP).await?;
        assert!(dumped.contains("-- PostgreSQL database dump complete"), "{dumped}");
        assert!(dumped.contains("-- Dumped from database version 15."), "{dumped}");
        assert!(dumped.contains(COUNT), "{dumped}");
        self.run_block(CLAIM).await?;
        let copied = self.run_block(COPY).await?;
        let digests: Vec<_> = copied.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(digests.len() == 2 && digests[0] == digests[1], "{copied}");
        let named = self.run_block(NAME_CLAIM).await?;
        assert!(named.ends_with("foodb-original"), "{named}");
        self.run_block(ADOPT).await?;
        let compared = self.run_block(COMPARE).await?;
        assert!(compared.contains(COUNT), "{compared}");
        self.run_block(END).await?;
        self.stage.synced((POSTGRESQL, OF_ORIGINAL, NAME)).await.map(drop)
    }

    /// The scripts give the root of the volume and the file that they read to the user postgres.
    async fn volume_restores_a_new_postgresql_and_changes_no_other_file(&self) -> Result<()> {
        let digests = "cd /backup; sha256sum *.sql";
        let before = self.in_operator(digests).await?;
        let bardb = json!({"apiVersion": POSTGRESQL.api_version, "kind": POSTGRESQL.kind,
            "metadata": {"name": "bardb"},
            "spec": {"db": "foo", "user": "foo", "password": "foodb-password",
                "backup": {"claimName": BACKUP_FOLDER, "schedule": "0 0 1 1 *"}}});
        self.stage.admin.apply_in(OF_ORIGINAL, &bardb.to_string()).await?;
        let restored = "kubectl wait pg bardb --for condition=Ready --timeout 5m\n\
            kubectl get pg bardb -o jsonpath='{.status.restoredFrom.backup} '\n\
            kubectl exec deployment/bardb -c postgres -- \
            psql -U foo foo -A -t -c 'SELECT name FROM hoge ORDER BY id'";
        let restored = self.run(restored).await?;
        assert!(restored.ends_with("bardb.sql foo\nbar\nlate\n"), "{restored}");
        let listed = self.in_operator(LIST).await?;
        assert_eq!(
            listed,
            "postgres 600 bardb.sql\npostgres 700 .\npostgres 700 bardb.backups\n\
             root 600 bazdb.sql\n"
        );
        assert_eq!(self.in_operator(digests).await?, before);
        Ok(())
    }
}
