//! Test plans of Sieve, as files give them.

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_faults::{PlanFile, SievePlan};

/// The maximum length of an error in bytes.
const ERROR_BYTES_MAX: usize = 1000;
/// The maximum time that an action waits.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// Reads a test plan. The names in an accepted plan are safe in the name of a file, its times are
/// bounded, and each action waits for triggers that suffice for it.
pub fn fuzz_entry(data: &[u8]) {
    match PlanFile::parse(data) {
        Err(error) => assert!(error.to_string().len() <= ERROR_BYTES_MAX, "{error}"),
        Ok(PlanFile::Faults(_)) => {}
        Ok(PlanFile::Sieve(plan)) => check(&plan),
    }
}

fn check(plan: &SievePlan) {
    let servers = plan.servers();
    assert!((1..=5).contains(&servers.len()), "{servers:?}");
    assert_eq!(servers[0], SievePlan::LEADING);
    for server in &servers {
        let is_safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!server.is_empty() && server.chars().all(is_safe), "{server:?}");
    }
    assert_eq!(plan.to_string().lines().count(), plan.actions.len());
    for action in &plan.actions {
        assert!(action.wait_before <= WAIT_MAX && action.wait_after <= WAIT_MAX);
        let all: BTreeSet<usize> = (0..action.triggers.len()).collect();
        let (mut satisfied, mut waited) = (BTreeSet::new(), BTreeSet::new());
        assert!(!action.expression.holds(&satisfied), "an action waits for nothing");
        while !action.expression.holds(&satisfied) {
            action.expression.waits_for(&satisfied, &mut waited);
            assert!(waited.is_subset(&all), "an action waits for an unknown trigger");
            assert_ne!(waited, satisfied, "an action never happens");
            satisfied.clone_from(&waited);
        }
        for trigger in &action.triggers {
            assert!(trigger.occurrence > 0);
            for part in trigger.condition.key().into_iter().flat_map(|key| [&key.kind, &key.name]) {
                assert!(
                    !part.is_empty() && !part.contains('/') && !part.contains(char::is_control)
                );
            }
        }
    }
}
