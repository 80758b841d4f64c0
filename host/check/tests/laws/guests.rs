//! The guests of the repository break no law.

use innkeeper_check::{Law, check};
use innkeeper_lab::Guests;
use serde_json::Value;

use crate::given::{SEED, budget, documents, player, subject};

/// The cases of each law.
const CASES: usize = 6;

/// What the last run of a playbook did, in the status of the guests that replace one.
const LAST_RUN: &str = ".status.lastRun";

fn assert_lawful(guest: &str, files: &[&str], skipped: &[Law], history: &[&str]) {
    println!("seed {SEED}");
    let guests = Guests::new().unwrap();
    let objects = files.iter().flat_map(|file| documents(file)).collect();
    let mut subject = subject(guest, &Value::Null, objects);
    subject.history = history.iter().map(|&field| field.to_owned()).collect();
    let laws: Vec<Law> = Law::ALL.into_iter().filter(|law| !skipped.contains(law)).collect();
    let report = check(&player(&guests, subject), &budget(&laws, CASES), |_, _, _| {}).unwrap();
    for law in &report.laws {
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
    }
}

#[test]
fn podroute_breaks_no_law() {
    assert_lawful("podroute", &["podroute/samples/podroute.yaml"], &[], &[]);
}

#[test]
fn postgres_breaks_no_law() {
    assert_lawful("postgres", &["postgres/samples/postgres.yaml"], &[], &[]);
}

#[test]
fn maintpage_breaks_no_law() {
    assert_lawful("maintpage", &["maintpage/samples/maintpage.yaml"], &[], &[]);
}

#[test]
fn imo_breaks_no_law() {
    assert_lawful("imo", &["imo/samples/imo.yaml"], &[], &[LAST_RUN]);
}

/// A Kuri runs a Job once: what a Job did with an earlier spec stays.
#[test]
fn kuri_breaks_no_law_but_those_about_earlier_specs() {
    let skipped = [Law::PathIndependence, Law::Rollback];
    assert_lawful("kuri", &["kuri/samples/kuri.yaml"], &skipped, &[LAST_RUN]);
}

/// Its status has the counts of the last run, as that of the original.
#[test]
fn kabocha_breaks_no_law() {
    let files = ["kabocha/samples/kabocha.yaml", "imo/crd.json", "kuri/crd.json"];
    let history = [LAST_RUN, r#".status.conditions[type="Running"].ansibleResult"#];
    assert_lawful("kabocha", &files, &[], &history);
}
