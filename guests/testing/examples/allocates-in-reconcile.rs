//! Allocates memory without end in `reconcile`.

use std::hint::black_box;

use bench_guest::Bench;
use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};

struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        bench_guest::Guest::describe()
    }

    fn reconcile(_context: &Context, _observed: &Observed<Bench>) -> Outcome {
        loop {
            // Not zero, so that the pages are used; opaque to the optimizer, so that the
            // allocation stays.
            black_box(vec![1_u8; 1024 * 1024].leak());
        }
    }
}

innkeeper_sdk::export!(Guest);
