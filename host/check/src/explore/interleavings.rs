//! Every crash of the host together with every staleness of its caches, for two primaries.

use innkeeper_faults::{CrashPoint, Fault, FaultPlan, PlannedFault, WatchFault};
use serde_json::Value;

use crate::case_generator::{Baseline, CaseGenerator, reference, second};
use crate::facts::condition;
use crate::fault_lists::late;
use crate::law::{Case, Expectation, Law};
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step};

/// The most kinds whose caches are late in all combinations. Of more kinds at most two are late at
/// once.
const KINDS_MAX: usize = 4;

/// The longest time that an event waits for the next ones.
const LATE_MILLISECONDS: u64 = 10_000;

/// The lifecycle of two primaries: a sample, and the same under another name. Both are deleted at
/// the end.
pub(crate) fn two_primary_lifecycle(seed: u64, sample: &Value) -> Scenario {
    let second = second(sample);
    let deletes = [sample, &second].map(|one| Step::Delete(reference(one)));
    let mut steps = vec![Step::Apply(sample.clone()), Step::Apply(second), Step::Settle];
    steps.extend(deletes);
    Scenario::new(seed, steps)
}

impl CaseGenerator<'_> {
    /// A crash before and after each write of each baseline, with each number of events, up to two,
    /// by which each watched kind's cache is late. The baseline has two primaries if they can exist
    /// at once.
    pub(crate) fn interleavings(&self, law: Law) -> Vec<Case> {
        let staleness = staleness(&self.watched());
        let mut cases = Vec::new();
        for (two, alone) in self.two_primary_baselines.iter().zip(self.baselines) {
            let baseline = if self.can_coexist(&two.outcome) { two } else { alone };
            let writes = baseline.outcome.write_count();
            for write in 1..=writes {
                for point in [CrashPoint::BeforeRequest, CrashPoint::BeforeAnswer] {
                    for late in &staleness {
                        let mut faults =
                            vec![PlannedFault::at_write(write, Fault::Crash { point })];
                        faults.extend_from_slice(late);
                        let mut scenario = baseline.scenario.with_faults(FaultPlan { faults });
                        // Watches begin again within a minute, so all of them are late.
                        scenario.steps.insert(0, Step::Wait(60));
                        let expectation = Expectation::AsWithoutFaults;
                        cases.push(Case { law, scenario, expectation });
                    }
                }
            }
        }
        cases
    }

    /// The lifecycles of two primaries that can exist at once.
    pub(crate) fn coexisting_baselines(&self) -> impl Iterator<Item = &Baseline> {
        self.two_primary_baselines.iter().filter(|two| self.can_coexist(&two.outcome))
    }

    /// Whether two primaries can exist at once: not if both want an object of the same name, which
    /// only one of them gets. Which one depends on the faults.
    fn can_coexist(&self, outcome: &Outcome) -> bool {
        let Some(settled) = outcome.states.first() else { return false };
        let primaries: Vec<&Value> = settled
            .objects()
            .map(|(_, object)| object)
            .filter(|one| self.subject.is_primary(one))
            .collect();
        let is_applied = |primary: &&Value| {
            condition(primary, "Synced").is_none_or(|synced| synced["status"] == "True")
        };
        primaries.len() == 2 && primaries.iter().all(is_applied)
    }
}

/// All combinations of 0, 1 and 2 events by which each resource's cache is late.
fn staleness(resources: &[String]) -> Vec<Vec<PlannedFault>> {
    let mut all: Vec<Vec<PlannedFault>> = vec![Vec::new()];
    for resource in resources {
        let mut more = Vec::new();
        for present in &all {
            if resources.len() > KINDS_MAX && present.len() >= 2 {
                continue;
            }
            for events in [1, 2] {
                let fault = WatchFault::Lag { events, milliseconds: LATE_MILLISECONDS };
                let mut next = present.clone();
                next.push(late(resource, 0, fault));
                more.push(next);
            }
        }
        all.extend(more);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_combination_of_late_caches_comes_once() {
        let resources = |count: usize| (0..count).map(|n| format!("r{n}")).collect::<Vec<_>>();
        for count in 0..=KINDS_MAX {
            let all = staleness(&resources(count));
            let lines: BTreeSet<String> = all.iter().map(|one| format!("{one:?}")).collect();
            assert_eq!(lines.len(), 3_usize.pow(u32::try_from(count).unwrap_or_default()));
            assert_eq!(lines.len(), all.len());
        }
        // None, two of each of six, and four of each of the 15 pairs.
        assert_eq!(staleness(&resources(6)).len(), 1 + 2 * 6 + 4 * 15);
    }
}
