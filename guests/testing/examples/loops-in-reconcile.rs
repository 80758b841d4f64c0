//! Never returns from `reconcile`.
#![allow(clippy::empty_loop, reason = "the fault that this guest is for")]

use bench_guest::Bench;
use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};

struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        bench_guest::Guest::describe()
    }

    fn reconcile(_context: &Context, _observed: &Observed<Bench>) -> Outcome {
        loop {}
    }
}

innkeeper_sdk::export!(Guest);
