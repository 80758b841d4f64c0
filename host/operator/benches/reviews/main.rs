//! What the host adds to a review: `cargo xtask guests required-labels`, then
//! `cargo bench -p innkeeper-operator --bench reviews`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench prints, and has nobody to tell of errors"
)]

mod cost;

use cost::{Costs, STEPS};

/// How many policies are loaded.
const POLICIES: [u32; 3] = [1, 10, 100];

/// Rounds. Each reviews one request with each count of policies.
const ROUNDS: usize = 20_000;

fn main() {
    let costs = cost::measure(&POLICIES, ROUNDS);
    println!("a Pod of {} bytes, {ROUNDS} interleaved rounds, us", cost::pod().to_string().len());
    println!("{:38} {:>14} {:>14}", "", "lowest tenth", "median");
    for (policies, Costs(steps)) in POLICIES.iter().zip(costs) {
        for (name, mut times) in STEPS.iter().zip(steps) {
            times.sort_unstable();
            // Other work on the machine makes times longer, never shorter: on a busy one the lowest
            // tenth says more than the median.
            let [low, median] =
                [times.len() / 10, times.len() / 2].map(|at| times[at].as_secs_f64() * 1e6);
            println!("{policies:4} policies, {name:22} {low:14.2} {median:14.2}");
        }
    }
}
