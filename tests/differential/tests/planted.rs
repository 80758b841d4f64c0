//! Mistakes planted in the simulator are found by the differential test.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod bench;

use innkeeper_differential_tests::generate;
use innkeeper_differential_tests::run::run;
use innkeeper_simulator::{BUGS, plant};

/// Requests after which a mistake counts as not found.
const MOST: usize = 6_000;

#[test]
fn every_planted_mistake_is_found() {
    let bench = bench::Bench::start();
    let seed = bench::number("INNKEEPER_SEED", 1);
    println!("INNKEEPER_SEED={seed}");
    let mut missed = Vec::new();
    for bug in BUGS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut requests = 0;
        plant(Some(bug));
        let found = loop {
            if requests > MOST {
                break false;
            }
            let case = generate::case(&mut rng);
            let outcome =
                run(&case, &bench.word(), &bench.real, &bench.simulated, &mut |_, _| requests += 1)
                    .unwrap();
            if outcome.is_some() {
                break true;
            }
        };
        plant(None);
        println!(
            "{bug:?}: {} after {requests} requests",
            if found { "found" } else { "NOT found" }
        );
        if !found {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not found with seed {seed}: {missed:?}");
}
