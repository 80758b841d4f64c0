//! The guests of `guests/laws.yaml` break no law.

use std::collections::BTreeSet;

use innkeeper_check::{Budget, check};
use innkeeper_lab::Guests;

use crate::guest_fixture::{ListedGuest, budget, runner, seed};

/// The cases of each law.
const CASES: usize = 6;

fn assert_lawful(name: &str) {
    let seed = seed();
    println!("seed {seed}: INNKEEPER_TEST_SEED={seed} runs it again");
    let listed = ListedGuest::all().into_iter().find(|one| one.guest == name).unwrap();
    let budget = Budget { seed, ..budget(&listed.laws(), CASES) };
    let runner = runner(&Guests::new().unwrap(), listed.subject());
    let report = check(&runner, &budget, |_| {}).unwrap();
    for law in &report.laws {
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
    }
    // Of the optional kinds of guests, the samples bring the definitions of all but OpenShift's.
    let not_served: &[&str] =
        if name == "podroute" { &["route.openshift.io/v1 Route"] } else { &[] };
    assert!(report.not_served.iter().eq(not_served), "{:?}", report.not_served);
}

macro_rules! guests {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test] fn $test() { assert_lawful($name); })*

        #[test]
        fn every_listed_guest_has_a_test() {
            let listed: BTreeSet<String> =
                ListedGuest::all().into_iter().map(|one| one.guest).collect();
            assert_eq!(listed, BTreeSet::from([$($name.to_owned()),*]));
        }
    };
}

guests! {
    podroute_breaks_no_law: "podroute",
    postgres_breaks_no_law: "postgres",
    maintpage_breaks_no_law: "maintpage",
    imo_breaks_no_law: "imo",
    kuri_breaks_no_law_but_those_about_earlier_specs: "kuri",
    kabocha_breaks_no_law: "kabocha",
}
