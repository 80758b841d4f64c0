//! Panics in `describe`.
#![allow(clippy::panic, reason = "the fault that this guest is for")]

use bench_guest::Bench;
use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};

struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        panic!("this guest cannot say what it is");
    }

    fn reconcile(context: &Context, observed: &Observed<Bench>) -> Outcome {
        bench_guest::Guest::reconcile(context, observed)
    }
}

innkeeper_sdk::export!(Guest);
