//! The whole loop against a scripted API server: the same seed gives the same requests, twice.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;
mod stage;

use std::time::Duration;

use innkeeper_loop_tests::Faults;
use running::block_on;
use serde_json::Value;
use stage::{BENCH, Stage, bench};

/// Runs the loop from an empty server through creations, changes, drift, faults and deletions;
/// gives every request and what was made.
fn run(seed: u64, faults: Faults) -> (Vec<String>, Vec<Value>) {
    block_on(async {
        let stage = Stage::start(seed, faults).await;
        for index in 0..20 {
            stage.server.put(BENCH, "benches", bench(&format!("b{index:02}"), 1));
        }
        stage.running.env().sleep(Duration::from_mins(1)).await;
        for index in (0..20).step_by(3) {
            stage.server.put(BENCH, "benches", bench(&format!("b{index:02}"), 5));
        }
        // Drift: somebody takes Services away.
        for index in (0..20).step_by(4) {
            stage.server.delete("api/v1", "services", "n", &format!("b{index:02}"));
        }
        stage.running.env().sleep(Duration::from_mins(10)).await;
        assert!(
            stage.running.operator().is_quiet(),
            "after ten minutes there is nothing left to do"
        );
        let before = stage.server.log().iter().filter(|line| is_write(line)).count();
        stage.running.env().sleep(Duration::from_mins(10)).await;
        let after = stage.server.log().iter().filter(|line| is_write(line)).count();
        assert_eq!(before, after, "a converged loop writes nothing");

        let server = stage.end().await;
        let mut made = server.list("apis/apps/v1", "deployments");
        made.extend(server.list("api/v1", "services"));
        (server.log(), made)
    })
}

fn is_write(line: &str) -> bool {
    ["PATCH", "POST", "DELETE", "PUT"].iter().any(|method| line.starts_with(method))
        && !line.contains("selfsubjectaccessreviews")
}

fn assert_same(first: &[String], second: &[String]) {
    for (index, (a, b)) in first.iter().zip(second).enumerate() {
        assert_eq!(a, b, "request {index} differs");
    }
    assert_eq!(first.len(), second.len());
}

#[test]
fn the_same_seed_gives_the_same_requests_twice() {
    let seed = 42;
    println!("seed {seed}");
    let (first, made) = run(seed, Faults::default());
    let (second, _) = run(seed, Faults::default());
    assert_same(&first, &second);
    assert_eq!(made.len(), 40, "a Deployment and a Service each");
    let deployment = made.iter().find(|one| one["metadata"]["name"] == "b03").unwrap();
    assert_eq!(deployment["spec"]["replicas"], 5);
    let impersonated = first.iter().filter(|line| is_write(line));
    for line in impersonated {
        assert!(line.contains("system:serviceaccount:innkeeper-modules:bench"), "{line}");
    }
}

#[test]
fn three_requests_a_resource_and_two_a_change() {
    let (log, _) = run(7, Faults::default());
    let writes = log.iter().filter(|line| is_write(line)).count();
    // 20 creations of three writes, 7 changes of two, and 5 Services made again, of which two
    // belong to resources that changed.
    assert_eq!(
        writes,
        20 * 3 + 7 * 2 + 5,
        "{:#?}",
        log.iter().filter(|line| is_write(line)).collect::<Vec<_>>()
    );
}

#[test]
fn with_faults_too_and_nothing_is_lost() {
    let faults = Faults { unavailable_every: 7, lost_every: 11 };
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let (first, made) = run(seed, faults);
        let (second, _) = run(seed, faults);
        assert_same(&first, &second);
        assert_eq!(made.len(), 40);
    }
}
