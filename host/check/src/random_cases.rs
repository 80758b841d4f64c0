//! Random cases of the laws, for the time that is left after the listed ones.

use innkeeper_faults::{FaultPlan, PlannedFault};

use crate::case_generator::{CaseGenerator, apply_and_settle, named_as};
use crate::fault_lists::{crashes, failures, interruptions, late, outages, watch_faults};
use crate::incident::PlannedIncident;
use crate::law::{Case, Expectation, Law};
use crate::scenario::{Scenario, Step};
use crate::variants;

/// The most changes of the spec in a random case.
const CHANGES_MAX: usize = 4;

/// The most faults of a random case.
const FAULTS_MAX: usize = 4;

impl CaseGenerator<'_> {
    /// A random case of a law: several faults, or several changes of the spec. `None` for a law
    /// whose listed cases are all that there are.
    pub(crate) fn random_case(&self, law: Law, random: &mut fastrand::Rng) -> Option<Case> {
        let seed = random.u64(..);
        let case = |scenario, expectation| Some(Case { law, scenario, expectation });
        match law {
            Law::Totality => {
                let variant = variants::random(self.subject, random)?;
                case(Scenario::new(seed, vec![Step::Apply(variant)]), Expectation::AllAccepted)
            }
            Law::Convergence => {
                let variant = variants::random(self.subject, random)?;
                case(apply_and_settle(seed, &variant), Expectation::Nothing)
            }
            Law::Determinism => {
                let variant = variants::random(self.subject, random)?;
                case(apply_and_settle(seed, &variant), Expectation::AsWithAnotherSeed)
            }
            Law::PathIndependence | Law::Rollback => {
                let first = random.choice(&self.subject.samples)?;
                let mut steps = vec![Step::Apply(first.clone())];
                for _ in 0..random.usize(1..=CHANGES_MAX) {
                    steps.push(random_wait(random));
                    let next = variants::random(self.subject, random)?;
                    steps.push(Step::Replace(named_as(next, first)));
                }
                if law == Law::Rollback {
                    steps.extend([random_wait(random), Step::Replace(first.clone())]);
                }
                case(Scenario::new(seed, steps), Expectation::AsWithTheLastSpecAlone)
            }
            Law::ImmutableFields => {
                let first = random.choice(&self.subject.samples)?;
                let next = named_as(variants::random(self.subject, random)?, first);
                let steps = vec![Step::Apply(first.clone()), Step::Settle, Step::Replace(next)];
                case(Scenario::new(seed, steps), Expectation::FollowsOrReports)
            }
            Law::Crash | Law::FailedWrites | Law::Staleness => {
                let baseline = random.choice(self.baselines)?;
                let writes = baseline.outcome.write_count().max(1);
                let mut faults = Vec::new();
                for _ in 0..random.usize(2..=FAULTS_MAX) {
                    faults.push(self.random_fault(law, writes, random)?);
                }
                let faults = FaultPlan { faults };
                let mut scenario = baseline.scenario.with_faults(faults);
                if law == Law::Staleness {
                    scenario.steps.insert(0, Step::Wait(60));
                }
                case(scenario, Expectation::AsWithoutFaults)
            }
            Law::Exploration => {
                let baselines = self.coexisting_baselines().chain(self.baselines);
                let baseline = random.choice(baselines.collect::<Vec<_>>())?;
                let writes = baseline.outcome.write_count().max(1);
                let mut faults = Vec::new();
                for _ in 0..random.usize(2..=FAULTS_MAX) {
                    let law = *random.choice(&[Law::Crash, Law::FailedWrites, Law::Staleness])?;
                    faults.push(self.random_fault(law, writes, random)?);
                }
                let mut scenario = baseline.scenario.with_faults(FaultPlan { faults });
                let incidents = [&interruptions()[..], &outages()].concat();
                if random.bool() {
                    let (write, incident) = (random.u32(1..=writes), *random.choice(&incidents)?);
                    scenario.incidents.push(PlannedIncident { write, incident });
                }
                scenario.steps.insert(0, Step::Wait(60));
                case(scenario, Expectation::AsWithoutFaults)
            }
            _ => None,
        }
    }

    fn random_fault(
        &self,
        law: Law,
        writes: u32,
        random: &mut fastrand::Rng,
    ) -> Option<PlannedFault> {
        if law == Law::Staleness {
            let (fault, count) = *random.choice(&watch_faults())?;
            let resource = random.choice(&self.watched())?.clone();
            return Some(late(&resource, count, fault));
        }
        let faults = if law == Law::Crash { crashes() } else { failures() };
        let fault = random.choice(&faults)?.clone();
        Some(PlannedFault::at_write(random.u32(1..=writes), fault))
    }
}

/// No time, a second, or as long as it takes until nobody writes.
fn random_wait(random: &mut fastrand::Rng) -> Step {
    match random.u8(..3) {
        0 => Step::Wait(0),
        1 => Step::Wait(1),
        _ => Step::Settle,
    }
}
