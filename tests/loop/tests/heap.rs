//! What the operator keeps in memory for each resource, counted at the allocator.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;
mod stage;

use std::time::Duration;

use innkeeper_loop_tests::Faults;
use peak_alloc::PeakAlloc;
use running::block_on;
use stage::{BENCH, Stage, bench};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes that an operator with this many converged resources gives back when it goes.
fn held(resources: usize) -> usize {
    let (before, server) = block_on(async {
        let stage = Stage::start(1, Faults::default()).await;
        for index in 0..resources {
            stage.server.put(BENCH, "benches", bench(&format!("b{index:04}"), 1));
        }
        stage.running.env().sleep(Duration::from_mins(5)).await;
        assert!(
            stage.running.operator().is_quiet(),
            "after five minutes there is nothing left to do"
        );
        (HEAP.current_usage(), stage.end().await)
    });
    // The runtime is gone too, and with it all that its tasks held.
    let after = HEAP.current_usage();
    assert_eq!(server.list("api/v1", "services").len(), resources);
    before - after
}

#[test]
fn a_resource_with_two_children_takes_less_than_eight_kibibytes() {
    let (few, many) = (100, 300);
    let bytes = (held(many) - held(few)) / (many - few);
    println!("{bytes} bytes a resource");
    assert!(bytes < 8 * 1024, "{bytes} bytes a resource: a primary, a Deployment and a Service");
}
