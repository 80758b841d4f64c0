//! Mistakes planted in the simulator are found by the differential test.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod bench;

use std::sync::Mutex;

use innkeeper_differential_tests::generate;
use innkeeper_differential_tests::outcome::{ATTEMPTS, is_unknown};
use innkeeper_simulator::{MUTATIONS, Mutation, activate_mutation};

/// Requests after which a mistake counts as not found.
const MOST: usize = 6_000;
/// Mistakes that are looked for side by side: each is planted in one thread only.
const LANES: usize = 4;

/// After how many requests a mistake is found, if it is.
fn look(lane: &mut bench::Lane<'_>, bug: Mutation, seed: u64) -> Result<usize, usize> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut requests = 0;
    let mut cases = 0_usize;
    let mut unknown = 0;
    let found = loop {
        if requests > MOST {
            break Err(requests);
        }
        if cases.is_multiple_of(bench::TOGETHER) {
            activate_mutation(None);
            lane.enter();
            activate_mutation(Some(bug));
        }
        cases += 1;
        let case = generate::case(&mut rng);
        let found = match lane.try_run(&case, &mut |_, _| requests += 1) {
            Err(failure) if is_unknown(&failure) => {
                // The next case begins elsewhere, and this one is left out.
                unknown += 1;
                assert!(unknown < ATTEMPTS, "{failure}");
                cases = 0;
                continue;
            }
            found => found.unwrap().is_some(),
        };
        if found && lane.disturbance().is_none() {
            break Ok(requests);
        }
    };
    activate_mutation(None);
    found
}

#[test]
fn every_planted_mistake_is_found() {
    let bench = bench::Bench::start();
    let seed = bench::number("INNKEEPER_SEED", 1);
    println!("INNKEEPER_SEED={seed}");
    let bugs = Mutex::new(MUTATIONS.into_iter());
    let missed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                let mut lane = bench.lane();
                while let Some(bug) = { bugs.lock().unwrap().next() } {
                    match look(&mut lane, bug, seed) {
                        Ok(requests) => println!("{bug:?}: found after {requests} requests"),
                        Err(requests) => {
                            println!("{bug:?}: NOT found after {requests} requests");
                            missed.lock().unwrap().push(bug);
                        }
                    }
                }
            });
        }
    });
    let missed = missed.lock().unwrap();
    assert!(missed.is_empty(), "not found with seed {seed}: {missed:?}");
}
