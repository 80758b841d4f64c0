//! Tests of `serve`.

use std::process::Stdio;

use crate::cluster::{Cluster, fails};
use crate::server::eventually;

#[test]
fn a_pod_that_is_deleted_and_replaced_has_its_rows() {
    let (cluster, server) = Cluster::with_rows();
    let status = server.stop();
    assert!(status.success(), "the server ended with {status}");
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn a_pod_that_is_killed_while_it_writes_has_what_was_committed() {
    let (cluster, mut server) = Cluster::with_rows();
    cluster.sql("INSERT INTO hoge VALUES ('committed')");
    let mut writer = cluster
        .psql("BEGIN; INSERT INTO hoge VALUES ('not committed'); SELECT pg_sleep(600)")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the writer writes", || {
        cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
    });
    let postmaster = std::fs::read_to_string(cluster.path("data").join("pgdata/postmaster.pid"));
    crate::server::kill("KILL", postmaster.unwrap().lines().next().unwrap().parse().unwrap());
    eventually("the container ends with its server", || server.has_ended());
    let _ = writer.wait();

    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo committed bar");
}

#[test]
fn server_disconnects_its_clients_when_it_gets_term() {
    let (cluster, server) = Cluster::with_rows();
    let mut client = cluster
        .psql("SELECT pg_sleep(600)")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the client is connected", || {
        cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"
    });
    let status = server.stop();
    assert!(status.success(), "the server ended with {status}");
    assert!(!client.wait().unwrap().success(), "the server must disconnect the client");
}

#[test]
fn serve_fails_without_a_prepared_database() {
    let cluster = Cluster::new();
    let output = fails(&cluster.container("serve").output().unwrap());
    assert!(output.contains("there is no database"), "{output}");
}
