//! The bench itself, with a few requests: it measures nothing, and does not rot.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_admission_load::bench::{Arguments, built_program, run};

#[tokio::test(flavor = "multi_thread")]
async fn bench_of_admission_runs_with_a_few_requests() {
    let arguments = Arguments {
        program: built_program().unwrap(),
        connections: 4,
        policies: 2,
        bindings: 20,
        rates: vec![20.0],
        seconds: 1.0,
        rounds: 1,
        default_malloc: false,
        only: None,
    };
    run(&arguments).await.unwrap();
}
