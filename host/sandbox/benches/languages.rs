//! The cost of guests in other languages, compared with guests in Rust: compilation, load, call and
//! memory.
//!
//! `labels` and `labels-js` do the same; `podroute` and `quota-py` each make two objects of a
//! custom resource, and `cron-go` one.
//!
//! `cargo xtask guests` first, then `cargo bench -p innkeeper-sandbox --bench languages`.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints, and panics on errors"
)]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Compile, Engine, Guest, Limits, Outcome,
    compile_child,
};
use serde_json::{Value, json};
use support::{Memory, NoWorld, mib};

/// The guests of other languages after the one in Rust that they are compared with.
const GUESTS: [&str; 5] = ["labels", "labels-js", "podroute", "quota-py", "cron-go"];
const IN_RUST: [&str; 2] = ["labels", "podroute"];

/// Long enough to show compilations that take longer than the default of a Module.
const COMPILE_TIME: Duration = Duration::from_mins(10);

/// Interleaved rounds of calls.
const ROUNDS: usize = 300;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["compile"] => return compile_child(),
        ["measure", name, folder] => measure(name, Path::new(folder)),
        _ => compare(),
    }
    ExitCode::SUCCESS
}

fn compare() {
    let folder = tempfile::tempdir().expect("a folder");
    println!("each in a process of its own; in MiB: what the module adds, after one call");
    println!(
        "{:12} {:>10} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "", "bytes", "compiled, s", "cached, ms", "code", "anonymous", "resident"
    );
    for name in GUESTS {
        let program = std::env::current_exe().expect("this program");
        let mut rows = Vec::new();
        // First into the cache, then from it.
        for _ in 0..2 {
            let output = Command::new(&program)
                .args(["measure", name])
                .arg(folder.path().join(name))
                .output()
                .expect("it starts");
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            rows.push(printed.split_whitespace().map(|n| n.parse().expect("a number")).collect());
        }
        let [cold, warm]: [Vec<f64>; 2] = rows.try_into().expect("two rows");
        println!(
            "{name:12} {:>10} {:>12.2} {:>12.2} {:>10.2} {:>10.2} {:>10.2}",
            support::component(name).len(),
            cold[0],
            warm[0] * 1e3,
            mib(code_bytes(&folder.path().join(name))),
            warm[1],
            warm[2],
        );
    }
    calls(folder.path());
}

/// Loads a guest and calls it once; says the time of loading, in s, and the memory, in MiB.
fn measure(name: &str, folder: &Path) {
    let engine = engine(folder);
    let bytes = support::component(name);
    let before = Memory::now();
    let started = Instant::now();
    let guest = engine.load(&bytes, &limits()).expect("a guest");
    let time = started.elapsed();
    call(&guest, &observed(name));
    let after = Memory::now();
    let grown = |of: fn(&Memory) -> u64| mib(of(&after).saturating_sub(of(&before)));
    println!(
        "{} {} {}",
        time.as_secs_f64(),
        grown(|memory| memory.anonymous),
        grown(|memory| memory.resident)
    );
}

/// Fresh instances, by epoch, as the host calls them; interleaved, so that whatever else the
/// machine does meets all alike.
fn calls(folder: &Path) {
    let mut guests: Vec<(&str, Guest, String, Vec<Duration>)> = GUESTS
        .iter()
        .map(|name| {
            let engine = engine(&folder.join(name));
            let guest = engine.load(&support::component(name), &limits());
            (*name, guest.expect("a guest"), observed(name), Vec::new())
        })
        .collect();
    for _ in 0..ROUNDS {
        for (_, guest, observed, times) in &mut guests {
            let started = Instant::now();
            call(guest, observed);
            times.push(started.elapsed());
        }
    }
    println!("a call, of {ROUNDS}: us (times the one in Rust above it), and memory of the guest");
    let mut rust = (0.0, 0.0);
    for (name, guest, observed, times) in &mut guests {
        times.sort_unstable();
        let [low, median] = [times.len() / 10, times.len() / 2].map(|at| micros(times[at]));
        if IN_RUST.contains(name) {
            rust = (low, median);
        }
        let run = guest.reconcile(observed, &mut NoWorld).expect("it reconciles");
        println!(
            "{name:12} lowest tenth {low:8.0} ({:6.1})  median {median:8.0} ({:6.1})  {:6.2} MiB",
            low / rust.0,
            median / rust.1,
            mib(run.figures.memory_peak_bytes as u64),
        );
    }
}

fn limits() -> Limits {
    Limits { compile_time: COMPILE_TIME, ..Limits::default() }
}

fn engine(folder: &Path) -> Engine {
    let folder = CacheFolder::open(folder).expect("a folder of ours");
    let key = CacheKey::Given([1; 32]);
    let cache = CodeCache::open(folder, &key, CACHE_BYTES_DEFAULT).expect("a cache");
    let program = std::env::current_exe().expect("this program");
    Engine::builder().compile(Compile::Child(program)).cache(cache).build().expect("an engine")
}

fn call(guest: &Guest, observed: &str) {
    let run = guest.reconcile(observed, &mut NoWorld).expect("it reconciles");
    assert!(
        matches!(&run.outcome, Outcome::Complete(one) | Outcome::Partial(one) if !one.objects.is_empty()),
        "{:?}",
        run.outcome
    );
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn code_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("the cache");
    entries.map(|entry| entry.and_then(|entry| entry.metadata()).expect("an entry").len()).sum()
}

/// What a guest is given: a small object, and parameters.
fn observed(name: &str) -> String {
    let (kind, spec, parameters) = match name {
        "podroute" => ("Podroute", json!({"image": "nginx", "replicas": 2}), Value::Null),
        "cron-go" => ("CronTab", json!({"schedule": "* * * * *", "image": "busybox"}), Value::Null),
        "quota-py" => (
            "Budget",
            json!({"size": "small", "overrides": {"pods": 20}}),
            json!({"sizes": {"small": {"hard": {"pods": 10, "requests.cpu": "2"},
                "container": {"cpu": "100m"}}}}),
        ),
        _ => ("Namespace", json!({}), json!({"labels": {"team": "a", "tier": "web"}})),
    };
    json!({
        "object": {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": "web", "namespace": "a", "uid": "0", "generation": 1},
            "spec": spec,
        },
        "parameters": parameters,
        "owned": [],
        "unapplied": [],
        "unserved": [],
        "deleting": false,
    })
    .to_string()
}
