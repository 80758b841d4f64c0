//! Direct evaluation: calls of the guest alone find bugs, scenarios confirm them, and guests
//! without bugs break nothing.

use std::time::Duration;

use innkeeper_check::{Budget, CheckReport, Law, Step, check};
use innkeeper_lab::Guests;
use serde_json::{Value, json};

use crate::control_list::with_bug;
use crate::guest_fixture::{ListedGuest, SEED, budget, documents, runner, subject};
use crate::known_bugs::{ANSWERS, IN_ANSWERS, KnownBug, OTHERS, PATHS, RARE};

/// The primaries of a search for a bug of the control list.
const PRIMARIES: usize = 400;

/// The primaries of a search for a rare combination.
const MANY_PRIMARIES: usize = 8_000;

/// As many primaries, and no other cases.
fn direct(laws: &[Law], primaries_max: usize) -> Budget {
    Budget { primaries_max, ..budget(laws, 0) }
}

/// Whether direct evaluation finds a bug.
fn is_found(guests: &Guests, known: &KnownBug, primaries_max: usize) -> bool {
    let runner = runner(guests, with_bug(known));
    let report = check(&runner, &direct(&[known.law], primaries_max), |_| {}).unwrap();
    let direct = &report.direct;
    println!(
        "{}: {} of {} primaries, {} unconfirmed {:?}",
        known.name,
        report.laws[0].broken.is_some(),
        direct.primaries,
        direct.unconfirmed,
        direct.suspicions
    );
    report.laws[0].broken.is_some()
}

fn assert_unbroken(report: &CheckReport, primaries: u64) {
    for law in &report.laws {
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
    }
    let judged = report.direct.primaries + report.direct.refused;
    assert_eq!(judged, primaries, "{:?}", report.direct);
    assert!(report.direct.primaries > primaries / 2, "{:?}", report.direct);
}

#[test]
fn bugs_of_the_control_list_that_answers_show_are_found() {
    let guests = Guests::new().unwrap();
    let all = ANSWERS.iter().chain(&PATHS).chain(&OTHERS);
    let known: Vec<&KnownBug> =
        all.filter(|known| IN_ANSWERS.contains(&known.name) && known.law != Law::Upgrade).collect();
    assert_eq!(known.len(), IN_ANSWERS.len());
    let missed: Vec<&str> = known
        .into_iter()
        .filter(|known| !is_found(&guests, known, PRIMARIES))
        .map(|known| known.name)
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn bugs_of_rare_combinations_are_found_among_thousands_of_primaries() {
    let guests = Guests::new().unwrap();
    for known in &RARE[1..] {
        assert!(is_found(&guests, known, MANY_PRIMARIES), "{}", known.name);
    }
}

#[test]
fn smallest_primary_of_a_rare_combination_has_its_six_properties() {
    let guests = Guests::new().unwrap();
    let known = &RARE[0];
    let runner = runner(&guests, with_bug(known));
    let budget =
        Budget { shrink_time: Duration::from_mins(1), ..direct(&[known.law], MANY_PRIMARIES) };
    let report = check(&runner, &budget, |_| {}).unwrap();
    assert!(report.direct.primaries > 500, "{:?}", report.direct);
    let trace = report.laws[0].broken.as_ref().unwrap();
    let Step::Apply(shop) = &trace.case.scenario.steps[0] else { panic!("{trace}") };
    let six = json!({"paused": true, "files": true, "migrate": true, "isStuck": true,
        "storage": 2, "replicas": shop["spec"]["replicas"]});
    assert_eq!(shop["spec"], six, "{trace}");
    assert!(shop["spec"]["replicas"].as_u64() >= Some(3), "{trace}");
    assert_eq!(trace.case.scenario.steps.len(), 1, "{trace}");
}

#[test]
fn bugs_of_rare_combinations_stay_unknown_to_thirty_scenarios() {
    let guests = Guests::new().unwrap();
    for known in &RARE {
        let runner = runner(&guests, with_bug(known));
        let report = check(&runner, &budget(&[known.law], 30), |_| {}).unwrap();
        assert!(report.laws[0].broken.is_none(), "{}", known.name);
    }
}

#[test]
fn guest_without_a_bug_breaks_nothing_directly() {
    let guests = Guests::new().unwrap();
    for sample in ["shop", "store", "sized", "migrated", "guarded", "misused"] {
        let objects = documents(&format!("testing/faulty/samples/{sample}.yaml"));
        let subject = subject("faulty", &Value::Null, objects);
        let report = check(&runner(&guests, subject), &direct(&Law::ALL, 120), |_| {}).unwrap();
        assert_unbroken(&report, 120);
        assert_eq!(report.direct.unconfirmed, 0, "{sample}: {:?}", report.direct.suspicions);
    }
}

#[test]
fn listed_guests_break_nothing_directly() {
    let guests = Guests::new().unwrap();
    for listed in ListedGuest::all() {
        println!("{}, seed {SEED}", listed.guest);
        let runner = runner(&guests, listed.subject());
        let report = check(&runner, &direct(&listed.laws(), 120), |_| {}).unwrap();
        println!("{:?}", report.direct);
        assert_unbroken(&report, 120);
    }
}

#[test]
fn same_seed_gives_the_same_figures() {
    let guests = Guests::new().unwrap();
    let figures = |seed| {
        let objects = documents("testing/faulty/samples/shop.yaml");
        let runner = runner(&guests, subject("faulty", &Value::Null, objects));
        let budget = Budget { seed, ..direct(&Law::ALL, 200) };
        let direct = check(&runner, &budget, |_| {}).unwrap().direct;
        (direct.primaries, direct.refused, direct.calls, direct.evaluations)
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}
