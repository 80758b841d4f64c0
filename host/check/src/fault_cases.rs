//! Cases with one kind of fault at one place of a baseline.

use innkeeper_faults::{CrashPoint, Fault, FaultPlan, PlannedFault};

use crate::case_generator::{Baseline, CaseGenerator, reference};
use crate::fault_lists::{late, watch_faults};
use crate::law::{Case, Expectation, Law};
use crate::scenario::{Scenario, Step};

impl CaseGenerator<'_> {
    /// Each fault at each write of each baseline, then at each two and at each six writes in a row.
    pub(crate) fn faults_at_writes(&self, faults: &[Fault], law: Law) -> Vec<Case> {
        let mut cases = Vec::new();
        for Baseline { scenario: baseline, outcome } in self.baselines {
            let writes = outcome.write_count();
            // The client repeats some requests four times.
            for count in [1, 2, 6] {
                for write in 1..=writes {
                    for fault in faults {
                        let once = PlannedFault::at_write(write, fault.clone());
                        let planned = PlannedFault { count, ..once };
                        let scenario = baseline.with_faults(FaultPlan { faults: vec![planned] });
                        let expectation = Expectation::AsWithoutFaults;
                        cases.push(Case { law, scenario, expectation });
                    }
                }
            }
        }
        cases
    }

    /// Each sample deleted a second after it was applied, with a write that fails before.
    pub(crate) fn faults_before_deletion(&self) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        for baseline in self.baselines {
            let writes = baseline.outcome.write_count();
            let Some(sample) = baseline.sample() else { continue };
            for write in 1..=writes {
                for fault in [Fault::Hang {}, Fault::Crash { point: CrashPoint::BeforeRequest }] {
                    let faults = vec![PlannedFault::at_write(write, fault)];
                    let steps = [
                        Step::Apply(sample.clone()),
                        Step::Wait(1),
                        Step::Delete(reference(sample)),
                    ];
                    let scenario = Scenario::new(self.seed, steps.to_vec());
                    scenarios.push(scenario.with_faults(FaultPlan { faults }));
                }
            }
        }
        scenarios
    }

    /// Each kind's watch late in each way, alone and with all others.
    pub(crate) fn late_watches(&self, law: Law) -> Vec<Case> {
        let resources = self.watched();
        let mut cases = Vec::new();
        for Baseline { scenario: baseline, .. } in self.baselines {
            // Watches begin again within a minute, so all faults have their time.
            let alone = resources.iter().map(std::slice::from_ref);
            for resources in alone.chain([&*resources]) {
                for (fault, count) in watch_faults() {
                    let late = |resource: &String| late(resource, count, fault);
                    let faults = resources.iter().map(late).collect();
                    let scenario = Scenario {
                        steps: [Step::Wait(60)].into_iter().chain(baseline.steps.clone()).collect(),
                        ..baseline.with_faults(FaultPlan { faults })
                    };
                    cases.push(Case { law, scenario, expectation: Expectation::AsWithoutFaults });
                }
            }
        }
        cases
    }
}
