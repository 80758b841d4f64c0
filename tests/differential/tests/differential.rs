//! The same random requests to the simulator and to a real API server.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod bench;

use bench::{Bench, number};
use innkeeper_differential_tests::case::Case;
use innkeeper_differential_tests::coverage::Coverage;
use innkeeper_differential_tests::generate;
use innkeeper_differential_tests::run::run;
use innkeeper_differential_tests::shrink::shrink;

/// Requests of one run, unless `INNKEEPER_DIFFERENTIAL_REQUESTS` says otherwise.
const REQUESTS: usize = 20_000;
/// The least part of requests that are accepted, and that are about an object of several managers, in %.
const ACCEPTED: usize = 40;
const SHARED: usize = 20;

#[test]
fn random_requests_are_answered_as_a_real_api_server_answers_them() {
    let bench = Bench::start();
    let (real, simulated) = (&bench.real, &bench.simulated);
    let seed = number("INNKEEPER_SEED", 1);
    let requests =
        usize::try_from(number("INNKEEPER_DIFFERENTIAL_REQUESTS", REQUESTS as u64)).unwrap();
    let most = number("INNKEEPER_DIFFERENTIAL_MOST", 1);
    println!("INNKEEPER_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut coverage = Coverage::default();
    let mut found = Vec::new();
    while coverage.total < requests {
        let case = generate::case(&mut rng);
        let difference = run(&case, &bench.word(), real, simulated, &mut |step, reply| {
            coverage.count(step, reply);
        })
        .unwrap();
        let Some(difference) = difference else { continue };
        let original = difference.describe(&case);
        let run_again =
            |case: &Case| run(case, &bench.word(), real, simulated, &mut |_, _| {}).unwrap();
        let small = shrink(case, &mut |case| run_again(case).is_some());
        let shown = run_again(&small)
            .map_or(format!("it did not show again:\n{original}"), |again| again.describe(&small));
        if std::env::var_os("INNKEEPER_DIFFERENTIAL_ORIGINAL").is_some() {
            println!("first seen as:\n{original}\n");
        }
        println!("difference after {} requests:\n{shown}\n", coverage.total);
        if std::env::var_os("INNKEEPER_DIFFERENTIAL_CASES").is_some() {
            println!("{}", serde_json::to_string(&small).unwrap());
        }
        found.push(shown);
        if found.len() as u64 >= most {
            break;
        }
    }
    println!("{coverage}");
    assert!(100 * coverage.accepted >= ACCEPTED * coverage.total, "too much is refused");
    assert!(100 * coverage.shared >= SHARED * coverage.total, "too few objects are shared");
    assert!(
        found.is_empty(),
        "{} differences with seed {seed}, the first:\n{}",
        found.len(),
        found[0]
    );
}

#[test]
fn what_once_differed_is_the_same_now() {
    let bench = Bench::start();
    let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", folder.display());
    let mut failed = Vec::new();
    for path in paths {
        let cases: Vec<Case> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for case in cases {
            let outcome =
                run(&case, &bench.word(), &bench.real, &bench.simulated, &mut |_, _| {}).unwrap();
            if let Some(difference) = outcome {
                failed.push(format!(
                    "{}: {}\n{}",
                    path.display(),
                    case.why,
                    difference.describe(&case)
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
