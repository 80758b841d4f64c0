//! Tests of the lock: two pods on one volume.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use crate::cluster::{Cluster, succeeds};
use crate::server::{eventually, kill};

/// Starts the next pod's `prepare` and waits until it waits for the lock.
fn waiting(cluster: &Cluster) -> Child {
    let mut next = cluster.start("prepare");
    let mut line = String::new();
    // Read only the line about the lock; the rest stays in the pipe.
    BufReader::with_capacity(1, next.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the process that holds the lock of"), "{line}");
    next
}

#[test]
fn the_next_pod_waits_until_the_server_before_has_ended() {
    let (cluster, server) = Cluster::with_rows();
    let mut next = waiting(&cluster);
    cluster.sql("INSERT INTO hoge VALUES ('at the last moment')");
    assert!(next.try_wait().unwrap().is_none(), "prepare must wait while the server runs");

    server.stop();
    assert!(succeeds(&next.wait_with_output().unwrap()).contains("the data is there"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar at the last moment");
}

#[test]
fn the_lock_is_held_as_long_as_a_server_runs_whatever_becomes_of_its_container() {
    let (cluster, mut server) = Cluster::with_rows();
    server.signal("KILL");
    eventually("the container's first process is gone", || server.has_ended());
    let mut next = waiting(&cluster);
    assert_eq!(cluster.rows(), "foo bar", "the server must still run");
    assert!(next.try_wait().unwrap().is_none());

    let postmaster =
        std::fs::read_to_string(cluster.path("data").join("pgdata/postmaster.pid")).unwrap();
    kill("INT", postmaster.lines().next().unwrap().parse().unwrap());
    succeeds(&next.wait_with_output().unwrap());
}

#[test]
fn waiting_pod_ends_when_it_gets_term() {
    let (cluster, _server) = Cluster::with_rows();
    let mut next = waiting(&cluster);
    kill("TERM", next.id());
    assert_eq!(next.wait().unwrap().code(), Some(143));
    assert_eq!(cluster.rows(), "foo bar");
}
