//! Known bugs: the check finds each of them, and none in the guest without a bug.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use innkeeper_check::{Budget, Law, Step, Subject, check};
use innkeeper_lab::Guests;
use serde_json::{Value, json};

use crate::guest_fixture::{SEED, budget, documents, runner, subject};
use crate::known_bugs::{ANSWERS, FAULTS, HARMLESS, KnownBug, OTHERS, PATHS, Setting};

/// The most cases of a law that it may take to find a bug.
const CASES_MAX: usize = 60;

fn samples() -> Vec<Value> {
    documents("testing/faulty/samples/shop.yaml")
}

/// The guest with a bug, its sample and its setting.
pub(crate) fn with_bug(known: &KnownBug) -> Subject {
    let mut objects = documents(&format!("testing/faulty/samples/{}.yaml", known.sample));
    if known.setting == Setting::NoSecret {
        objects.retain(|object| object["kind"] != "Secret");
    }
    if known.setting == Setting::ServiceTaken {
        objects.push(json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"ports": [{"port": 1}]}}));
    }
    let mut subject = subject("faulty", &json!({ "bug": known.name }), objects);
    match known.setting {
        Setting::SecretGranted => {
            subject.module["spec"]["secretNames"] = json!([format!("{}-password", known.sample)]);
        }
        Setting::UpgradeFromCorrect => subject.earlier_module = Some(earlier(&subject, "none")),
        Setting::UpgradeFromOldImage => {
            subject.earlier_module = Some(earlier(&subject, "old-image"));
        }
        _ => {}
    }
    subject
}

fn earlier(subject: &Subject, bug: &str) -> Value {
    let mut module = subject.module.clone();
    module["spec"]["parameters"]["bug"] = bug.into();
    module
}

#[test]
fn each_bug_of_an_answer_breaks_its_law() {
    assert_found(&ANSWERS);
}

#[test]
fn each_bug_with_earlier_specs_breaks_its_law() {
    assert_found(&PATHS);
}

#[test]
fn each_bug_under_faults_breaks_its_law() {
    assert_found(&FAULTS);
}

#[test]
fn each_bug_that_others_meet_breaks_its_law() {
    assert_found(&OTHERS);
}

#[test]
fn harmless_bugs_break_no_law() {
    let guests = Guests::new().unwrap();
    for known in &HARMLESS {
        let runner = runner(&guests, with_bug(known));
        let report = check(&runner, &budget(&[known.law], 2), |_| {}).unwrap();
        assert!(report.laws[0].checked > 0, "{}", known.name);
        let broken = &report.laws[0].broken;
        assert!(broken.is_none(), "{}: {}", known.name, broken.as_ref().unwrap());
    }
}

#[test]
fn each_law_has_a_known_bug() {
    let known = ANSWERS.iter().chain(&PATHS).chain(&FAULTS).chain(&OTHERS);
    let laws: BTreeSet<Law> = known.map(|known| known.law).collect();
    assert_eq!(laws, BTreeSet::from(Law::ALL));
}

fn assert_found(bugs: &[KnownBug]) {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let mut missed = Vec::new();
    for known in bugs {
        let (name, law) = (known.name, known.law);
        let start = Instant::now();
        let runner = runner(&guests, with_bug(known));
        let report = check(&runner, &budget(&[law], CASES_MAX), |_| {}).unwrap();
        let checked = report.laws[0].checked;
        let Some(trace) = &report.laws[0].broken else {
            missed.push(format!("{name}: {law} holds in {checked} cases"));
            continue;
        };
        let time = start.elapsed().as_millis();
        println!("{name}: {law} after {checked} cases, {time} ms: {}", trace.violation.what);
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn guest_without_a_bug_breaks_no_law() {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let subject = subject("faulty", &Value::Null, samples());
    let report = check(&runner(&guests, subject), &budget(&Law::ALL, 12), |_| {}).unwrap();
    for law in &report.laws {
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
    }
    assert_eq!(report.properties.unchanged, Vec::<String>::new());
}

#[test]
fn guest_without_a_bug_breaks_no_law_with_data_jobs_and_passwords() {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    for sample in ["store", "sized", "migrated", "guarded", "misused"] {
        let objects = documents(&format!("testing/faulty/samples/{sample}.yaml"));
        let subject = subject("faulty", &Value::Null, objects);
        let report = check(&runner(&guests, subject), &budget(&Law::ALL, 3), |_| {}).unwrap();
        for law in &report.laws {
            assert!(law.broken.is_none(), "{sample}: {}", law.broken.as_ref().unwrap());
        }
    }
}

#[test]
fn smallest_scenario_of_a_stuck_deletion_still_deletes() {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let subject = subject("faulty", &json!({ "bug": "never-finalized" }), samples());
    let budget = Budget { shrink_time: Duration::from_secs(20), ..budget(&[Law::Finalizing], 1) };
    let report = check(&runner(&guests, subject), &budget, |_| {}).unwrap();
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
    let result = check(&runner(&guests, subject), &budget(&[Law::Crash], 1), |_| {});
    let message = result.unwrap_err().to_string();
    assert!(message.contains("refuses a sample") && message.contains("replicas"), "{message}");
}
