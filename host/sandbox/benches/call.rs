//! What the sandbox costs: one reconcile of a snapshot of 7 KB, in a fresh instance, in a warm
//! one, and native; the same function, the same types, the same input.
//!
//! `cargo xtask guests` first, then `cargo bench -p innkeeper-sandbox`.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and has nobody to tell of errors"
)]

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use innkeeper_sandbox::{Engine, Guest, Interruption, Limits};
use support::NoWorld;

/// The component of the crate `bench_guest`, which is the native side.
const COMPONENT: &str = "bench-guest";

/// Rounds of the comparison. In each, every contender is timed for one call, or for a few
/// where they are in one instance.
const ROUNDS: usize = 5_000;
const WARM_CALLS: u32 = 3;

fn main() {
    let observed = observed();
    let bytes = support::component(COMPONENT);
    let epoch = load(&bytes, Interruption::Epoch);
    let never = load(&bytes, Interruption::Never);
    check(&epoch, &observed);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("reconcile");
    group.bench_function("native", |b| b.iter(|| native(&observed)));
    group.bench_function("fresh", |b| b.iter(|| fresh(&never, &observed)));
    group.bench_function("fresh, by epoch", |b| b.iter(|| fresh(&epoch, &observed)));
    group.bench_function("warm, by epoch", |b| {
        b.iter_custom(|calls| {
            let calls = u32::try_from(calls).unwrap_or(u32::MAX);
            warm(&epoch, &observed, calls) * calls
        });
    });
    group.finish();
    criterion.final_summary();

    compare(&observed, &never, &epoch);
}

/// A name, a mean time whenever asked, and the times so far.
type Contender<'a> = (&'static str, Box<dyn Fn() -> Duration + 'a>, Vec<Duration>);

/// Interleaved, so that whatever else the machine does meets all contenders alike.
fn compare(observed: &str, never: &Guest, epoch: &Guest) {
    let mut contenders: [Contender<'_>; 6] = [
        ("native", Box::new(|| timed(|| native(observed))), Vec::new()),
        ("warm", Box::new(|| warm(never, observed, WARM_CALLS)), Vec::new()),
        ("fresh", Box::new(|| timed(|| sandboxed(never, observed))), Vec::new()),
        ("warm, by epoch", Box::new(|| warm(epoch, observed, WARM_CALLS)), Vec::new()),
        ("fresh, by epoch", Box::new(|| timed(|| sandboxed(epoch, observed))), Vec::new()),
        ("fresh, by epoch, output read", Box::new(|| timed(|| fresh(epoch, observed))), Vec::new()),
    ];
    for _ in 0..ROUNDS {
        for (_, run, times) in &mut contenders {
            times.push(run());
        }
    }
    println!("snapshot of {} bytes, {ROUNDS} interleaved rounds, us (x native)", observed.len());
    println!("{:30} {:>16} {:>16}", "", "lowest tenth", "median");
    let mut native = None;
    for (name, _, times) in &mut contenders {
        times.sort_unstable();
        // Other work on the machine makes times longer, never shorter: on a busy one the lowest
        // tenth says more than the median.
        let [low, median] = [times.len() / 10, times.len() / 2].map(|at| micros(times[at]));
        let (base_low, base) = *native.get_or_insert((low, median));
        println!(
            "{name:30} {low:8.2} ({:5.2}) {median:8.2} ({:5.2})",
            low / base_low,
            median / base
        );
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn timed(run: impl FnOnce()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

fn native(observed: &str) {
    black_box(bench_guest::reconcile_json(black_box(observed)));
}

fn fresh(guest: &Guest, observed: &str) {
    black_box(guest.reconcile(black_box(observed), &mut NoWorld).expect("it reconciles"));
}

/// Without reading the document that the guest gives, which the native side does not either.
fn sandboxed(guest: &Guest, observed: &str) {
    black_box(guest.reconcile_text(black_box(observed), &mut NoWorld).expect("it reconciles"));
}

fn warm(guest: &Guest, observed: &str, calls: u32) -> Duration {
    guest.time_warm(black_box(observed), &mut NoWorld, calls).expect("it reconciles")
}

/// Both must do the same work.
fn check(guest: &Guest, observed: &str) {
    let native = bench_guest::reconcile_json(observed);
    let sandboxed = guest.reconcile_text(observed, &mut NoWorld).expect("it reconciles");
    assert_eq!(native, sandboxed, "the component is not of these sources");
}

fn load(bytes: &[u8], interruption: Interruption) -> Guest {
    let engine = Engine::builder().interruption(interruption).build().expect("an engine");
    let limits = Limits { time: Duration::from_mins(10), ..Limits::default() };
    engine.load(bytes, &limits).expect("a guest")
}

/// A Bench with its two children, about 7 KB as the host gives it: without white space.
fn observed() -> String {
    let observed: serde_json::Value =
        serde_json::from_str(include_str!("observed.json")).expect("JSON");
    observed.to_string()
}
