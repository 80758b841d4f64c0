//! Known bugs: the check finds each of them, and none in the guest without a bug.

use std::time::Duration;

use innkeeper_check::{Budget, Law, Step, check};
use innkeeper_lab::Guests;
use serde_json::{Value, json};

use crate::given::{SEED, budget, documents, player, subject};

/// The most cases of a law that it may take to find a bug.
const CASES_MAX: usize = 60;

/// Each bug of the guest `faulty`, and the law that it breaks.
const BUGS: [(&str, Law); 23] = [
    ("trap-on-empty-image", Law::Totality),
    ("loop-on-zero-replicas", Law::Totality),
    ("name-from-setting", Law::Totality),
    ("duplicate-pages", Law::Totality),
    ("foreign-namespace", Law::Totality),
    ("divide-by-replicas", Law::Totality),
    ("time-in-data", Law::Convergence),
    ("count-runs", Law::Fixpoint),
    ("flap-when-ready", Law::Convergence),
    ("alternate", Law::Fixpoint),
    ("part-of-uid", Law::Determinism),
    ("never-scales-down", Law::PathIndependence),
    ("stays-paused", Law::Rollback),
    ("keeps-settings", Law::PathIndependence),
    ("keeps-first-image", Law::PathIndependence),
    ("keeps-pages", Law::PathIndependence),
    ("sets-up-once", Law::FailedWrites),
    ("adopts-drift", Law::DriftRepair),
    ("forgets-what-exists", Law::DriftRepair),
    ("status-once", Law::PathIndependence),
    ("never-finalized", Law::Finalizing),
    ("finalized-if-ready", Law::Finalizing),
    ("finalized-if-initialized", Law::Finalizing),
];

fn samples() -> Vec<Value> {
    documents("testing/faulty/samples/shop.yaml")
}

#[test]
fn each_known_bug_of_the_first_half_breaks_its_law() {
    assert_found(&BUGS[..BUGS.len() / 2]);
}

#[test]
fn each_known_bug_of_the_second_half_breaks_its_law() {
    assert_found(&BUGS[BUGS.len() / 2..]);
}

fn assert_found(bugs: &[(&str, Law)]) {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let mut missed = Vec::new();
    for &(bug, law) in bugs {
        let subject = subject("faulty", &json!({ "bug": bug }), samples());
        let report = check(&player(&guests, subject), &budget(&[law], CASES_MAX), |_, _, _| {});
        let report = report.unwrap();
        match &report.laws[0].broken {
            Some(trace) => {
                println!(
                    "{bug}: {law} after {} cases: {}",
                    report.laws[0].checked, trace.violation.what
                );
            }
            None => missed.push(format!("{bug}: {law} holds in {} cases", report.laws[0].checked)),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn guest_without_a_bug_breaks_no_law() {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let subject = subject("faulty", &Value::Null, samples());
    let report = check(&player(&guests, subject), &budget(&Law::ALL, 12), |_, _, _| {}).unwrap();
    for law in &report.laws {
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
    }
    assert_eq!(report.properties.unchanged, Vec::<String>::new());
}

#[test]
fn smallest_scenario_of_a_stuck_deletion_still_deletes() {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let subject = subject("faulty", &json!({ "bug": "never-finalized" }), samples());
    let budget = Budget { shrink_time: Duration::from_secs(20), ..budget(&[Law::Finalizing], 1) };
    let report = check(&player(&guests, subject), &budget, |_, _, _| {}).unwrap();
    let trace = report.laws[0].broken.as_ref().unwrap();
    let steps = &trace.case.scenario.steps;
    assert!(steps.iter().any(|step| matches!(step, Step::Delete(_))), "{trace}");
    // Nothing of the spec is needed for it.
    let Step::Apply(shop) = &steps[0] else { panic!("{trace}") };
    assert_eq!(shop["spec"], json!({}), "{trace}");
}

#[test]
fn sample_that_the_api_server_refuses_is_an_error() {
    let guests = Guests::new().unwrap();
    let mut samples = samples();
    samples[0]["spec"]["replicas"] = json!(11);
    let subject = subject("faulty", &Value::Null, samples);
    let result = check(&player(&guests, subject), &budget(&[Law::Crash], 1), |_, _, _| {});
    let message = result.unwrap_err().to_string();
    assert!(message.contains("refuses a sample") && message.contains("replicas"), "{message}");
}
