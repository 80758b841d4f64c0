//! Tests of data in the pod: each pod has its own, and all share the volume of the backups.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

use crate::cluster::{Cluster, set_mode, succeeds};
use crate::server::{Server, eventually};

/// Two pods.
const FIRST: &str = "data";
const SECOND: &str = "data-of-the-second-pod";

impl Cluster {
    /// The containers of the first pod, whose data is in the pod.
    fn in_first_pod() -> Self {
        let mut cluster = Self::new();
        cluster.variables.insert("EPHEMERAL", "yes".into());
        cluster.in_pod(FIRST);
        cluster
    }

    /// The same with the sample's table, and its running server.
    fn in_first_pod_with_rows() -> (Self, Server) {
        let cluster = Self::in_first_pod();
        let server = cluster.serve_rows();
        (cluster, server)
    }

    /// The containers of this pod from now on.
    fn in_pod(&mut self, pod: &'static str) {
        let data = self.path(pod);
        if !data.exists() {
            fs::create_dir(&data).unwrap();
            set_mode(&data, 0o755);
        }
        self.variables.insert("DATA", data.into());
    }
}

/// Starts a script and waits until it waits for the lock.
fn waiting(cluster: &Cluster, script: &str) -> Child {
    let mut next = cluster.start(script);
    let mut line = String::new();
    BufReader::with_capacity(1, next.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the process that holds the lock of"), "{line}");
    next
}

#[test]
fn new_pod_has_the_rows_of_the_newest_backup_and_not_the_later_ones() {
    let (mut cluster, server) = Cluster::in_first_pod_with_rows();
    cluster.backs_up();
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    server.stop();

    cluster.in_pod(SECOND);
    assert!(cluster.prepares().contains("restored from 0000000001-"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn restarted_container_keeps_the_rows_since_the_last_backup() {
    let (cluster, server) = Cluster::in_first_pod_with_rows();
    cluster.backs_up();
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    server.stop();

    let server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
    server.stop();
    // The whole pod starts again, for example after its node.
    assert!(cluster.prepares().contains("the data is there"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
}

#[test]
fn second_pod_waits_for_the_first_and_has_its_last_backup() {
    let (mut cluster, server) = Cluster::in_first_pod_with_rows();

    cluster.in_pod(SECOND);
    let mut next = waiting(&cluster, "prepare");
    // The server of the first pod still answers, and is still backed up.
    cluster.backs_up();
    assert!(next.try_wait().unwrap().is_none(), "prepare must wait while the server runs");
    server.stop();
    let output = succeeds(&next.wait_with_output().unwrap());
    assert!(output.contains("restored from 0000000001-"), "{output}");
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn pod_that_another_one_has_overtaken_restores_again_before_it_serves() {
    let mut cluster = Cluster::in_first_pod();
    cluster.prepares();
    // The second pod comes between `prepare` and the server of the first.
    cluster.in_pod(SECOND);
    let server = cluster.serve_rows();
    cluster.backs_up();
    server.stop();

    cluster.in_pod(FIRST);
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn new_pod_waits_for_a_backup_of_the_former_one_that_is_still_checked() {
    let (mut cluster, server) = Cluster::in_first_pod_with_rows();
    // Checking the dump takes until the test creates a file.
    let go = cluster.path("scripts").join("go");
    let wait = format!(
        "touch '{}.asked'; while [ ! -e '{}' ]; do sleep 0.05; done; exec \"$REAL\" \"$@\"",
        cluster.path("sockets").join("check").display(),
        go.display()
    );
    cluster.fake("pg_restore", &wait);
    let backup = cluster.start("backup");
    let asked = cluster.path("sockets").join("check.asked");
    eventually("the dump is complete and being checked", || asked.exists());
    server.stop();

    cluster.in_pod(SECOND);
    let next = cluster.start("prepare");
    let turn = cluster.path(SECOND).join("turn");
    eventually("the second pod has the lock of the data", || turn.exists());
    fs::write(&go, "").unwrap();
    succeeds(&backup.wait_with_output().unwrap());
    let output = succeeds(&next.wait_with_output().unwrap());
    assert!(output.contains("restored from 0000000001-"), "{output}");
}

#[test]
fn restarted_container_keeps_its_rows_when_the_backups_are_gone() {
    let (cluster, server) = Cluster::in_first_pod_with_rows();
    server.stop();
    for name in cluster.files("backups") {
        fs::remove_file(cluster.path("backups").join(name)).unwrap();
    }
    let server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
    server.stop();
    assert!(cluster.prepares().contains("the data is there"));
}

#[test]
fn new_pod_does_not_start_empty_when_no_backup_can_be_restored() {
    let cluster = Cluster::in_first_pod();
    fs::write(cluster.path("backups").join("0000000001-20260101T000000Z.dump"), "no").unwrap();
    let output = cluster.does_not_prepare();
    assert!(output.contains("none of the backups can be restored"), "{output}");
}
