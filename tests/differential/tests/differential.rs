//! The same random requests to the simulator and to a real API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "it is the report")]

mod bench;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use innkeeper_differential_tests::case::Case;
use innkeeper_differential_tests::coverage::Coverage;
use innkeeper_differential_tests::shrink::shrink;
use innkeeper_differential_tests::{follow, generate, shorthand};

use bench::{Bench, Lane, TOGETHER, number};

/// Requests of one run, unless `INNKEEPER_DIFFERENTIAL_REQUESTS` says otherwise.
const REQUESTS: usize = 20_000;
/// Random cases of owners, and of roles.
const OWNERS: usize = 60;
const ROLES: usize = 100;
/// How often a case is run again elsewhere if the real server itself has written where it ran.
const AGAIN: usize = 5;
/// Cases that run side by side, each in names of its own.
const LANES: u64 = 4;
/// As many of cases that wait for controllers.
const LANES_OF_CASES: usize = 8;
/// The least part of requests that are accepted, and that are about an object of several managers,
/// in %.
const ACCEPTED: usize = 40;
const SHARED: usize = 20;

/// The cases of a seed, in order, the same in every run.
struct Plan {
    rng: fastrand::Rng,
    cases: usize,
    requests: usize,
    /// How many requests are wanted.
    most: usize,
}

impl Plan {
    /// Those of the next namespace.
    fn next(&mut self) -> Option<Vec<(usize, Case)>> {
        let mut cases = Vec::new();
        while cases.len() < TOGETHER && self.requests < self.most {
            let case = generate::case(&mut self.rng);
            self.requests += case.steps.len();
            self.cases += 1;
            cases.push((self.cases, case));
        }
        (!cases.is_empty()).then_some(cases)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a case. If the servers differ, gives what is shown of it when it has been made smaller.
fn differs(lane: &mut Lane<'_>, case: Case, coverage: &Mutex<Coverage>) -> Option<String> {
    let mut difference = lane.run(&case, &mut |step, reply| lock(coverage).count(step, reply))?;
    for _ in 0..AGAIN {
        let Some(disturbance) = lane.disturbance() else { break };
        println!("it is run again elsewhere: the real server has written {disturbance}");
        lane.enter();
        difference = lane.run(&case, &mut |_, _| {})?;
    }
    let original = difference.describe(&case);
    let small = shrink(case, &mut |case| lane.run(case, &mut |_, _| {}).is_some());
    let mut shown = lane
        .run(&small, &mut |_, _| {})
        .map_or(format!("it did not show again:\n{original}"), |again| again.describe(&small));
    if std::env::var_os("INNKEEPER_DIFFERENTIAL_ORIGINAL").is_some() {
        shown = format!("{shown}\nfirst seen as:\n{original}");
    }
    if std::env::var_os("INNKEEPER_DIFFERENTIAL_CASES").is_some() {
        shown = format!("{shown}\n{}", serde_json::to_string(&small).unwrap());
    }
    Some(shown)
}

#[test]
fn random_requests_are_answered_as_a_real_api_server_answers_them() {
    let bench = Bench::start();
    let seed = number("INNKEEPER_SEED", 1);
    let requests =
        usize::try_from(number("INNKEEPER_DIFFERENTIAL_REQUESTS", REQUESTS as u64)).unwrap();
    let most = usize::try_from(number("INNKEEPER_DIFFERENTIAL_MOST", 1)).unwrap();
    println!("INNKEEPER_SEED={seed}");
    let rng = fastrand::Rng::with_seed(seed);
    let plan = Mutex::new(Plan { rng, cases: 0, requests: 0, most: requests });
    let coverage = Mutex::new(Coverage::of(bench.types()));
    let found = Mutex::new(BTreeMap::new());
    let lanes = number("INNKEEPER_DIFFERENTIAL_LANES", LANES);
    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                let mut lane = bench.lane();
                while let Some(cases) = { lock(&plan).next() } {
                    lane.enter();
                    for (index, case) in cases {
                        if lock(&found).len() >= most {
                            return;
                        }
                        if let Some(shown) = differs(&mut lane, case, &coverage) {
                            println!("case {index}:\n{shown}\n");
                            lock(&found).insert(index, shown);
                        }
                    }
                }
            });
        }
    });
    let coverage = lock(&coverage);
    println!("{coverage}");
    println!("{lanes} lanes, {:.0} requests a second", {
        #[expect(clippy::cast_precision_loss, reason = "it is shown")]
        let total = coverage.total as f64;
        total / start.elapsed().as_secs_f64()
    });
    assert!(100 * coverage.accepted >= ACCEPTED * coverage.total, "too much is refused");
    assert!(100 * coverage.shared >= SHARED * coverage.total, "too few objects are shared");
    let found = lock(&found);
    if let Some((index, first)) = found.first_key_value() {
        panic!("{} differences with seed {seed}, the first in case {index}:\n{first}", found.len());
    }
}

/// Runs cases side by side, each with what it is called, and tells which differ.
fn all_the_same(bench: &Bench, cases: &[(String, Case)]) {
    assert!(!cases.is_empty(), "there are no cases");
    // So that all lanes have work.
    let together = cases.len().div_ceil(LANES_OF_CASES).min(TOGETHER);
    let plan = Mutex::new(cases.chunks(together));
    let coverage = Mutex::new(Coverage::default());
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES_OF_CASES {
            scope.spawn(|| {
                let mut lane = bench.lane();
                while let Some(cases) = { lock(&plan).next() } {
                    lane.enter();
                    for (name, case) in cases {
                        let difference =
                            lane.run(case, &mut |step, reply| lock(&coverage).count(step, reply));
                        if let Some(difference) = difference {
                            lock(&found).insert(name, difference.describe(case));
                        }
                    }
                }
            });
        }
    });
    println!("{}", lock(&coverage));
    let found = lock(&found);
    let texts: Vec<String> = found.iter().map(|(name, text)| format!("{name}:\n{text}")).collect();
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), texts.join("\n\n"));
}

/// A number of random cases.
fn random(cases: usize, make: fn(&mut fastrand::Rng) -> Case) -> Vec<(String, Case)> {
    let seed = number("INNKEEPER_SEED", 1);
    println!("INNKEEPER_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..cases).map(|index| (format!("case {index} of seed {seed}"), make(&mut rng))).collect()
}

/// The cases of a folder.
fn kept(folder: &str) -> Vec<(String, Case)> {
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = |case: &Case| format!("{}: {} {}", path.display(), case.why, case.source);
        found.extend(shorthand::read(&path).unwrap().into_iter().map(|case| (name(&case), case)));
    }
    found
}

#[test]
fn garbage_collection_leaves_what_a_real_one_leaves() {
    all_the_same(&Bench::with(true), &random(OWNERS, follow::owners));
}

#[test]
fn roles_allow_what_they_allow_on_a_real_server() {
    all_the_same(&Bench::start(), &random(ROLES, follow::roles));
}

#[test]
fn controllers_leave_what_real_ones_leave() {
    all_the_same(&Bench::with(true), &kept("live"));
}

#[test]
fn kept_cases_get_equal_answers() {
    all_the_same(&Bench::start(), &kept("cases"));
}
