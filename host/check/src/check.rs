//! Checks the laws, within a budget of time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::budget::Budget;
use crate::case_generator::{Baseline, CaseGenerator, lifecycle};
use crate::cluster_state::ClusterState;
use crate::direct::{self, DirectFigures, Found};
use crate::explore::{self, Corpus};
use crate::law::{Case, Judgement, Law};
use crate::oracle::Oracle;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
use crate::shrink::{Shrunk, shrink};
use crate::subject::Subject;
use crate::trace::Trace;
use crate::variants;

/// The part of the time that direct evaluation gets, if there is a limit.
const DIRECT_SHARE: u32 = 10;

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Direct evaluation has judged so many primaries.
    Direct(u64),
    /// So many of a law's cases were checked and are listed.
    Law(Law, usize, usize),
}

/// The result of one law.
#[derive(Clone, Debug)]
pub struct LawResult {
    /// The law.
    pub law: Law,
    /// How many cases the law has without random ones.
    pub cases: usize,
    /// How many cases were checked, random ones included.
    pub checked: usize,
    /// About how many of the checked cases the law says nothing.
    pub inconclusive: usize,
    /// How many different parts the signatures of the checked cases have: requests with their
    /// answers and successors, and reasons of conditions, Events and failures.
    pub signature_parts: usize,
    /// For how many primaries direct evaluation has judged the law.
    pub direct: u64,
    /// The smallest scenario that breaks the law, if one does.
    pub broken: Option<Trace>,
}

impl LawResult {
    /// Whether the law says something about at least one of the checked cases.
    pub fn is_judged(&self) -> bool {
        self.checked > self.inconclusive
    }
}

/// The results of all laws.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The results, in order.
    pub laws: Vec<LawResult>,
    /// The properties of the schema of the primary kind, and how many of them the objects of the
    /// check have with more than one value.
    pub properties: variants::Coverage,
    /// The kinds of the guest that the simulated cluster does not serve: nothing of them
    /// is compared.
    pub not_served: BTreeSet<String>,
    /// How much direct evaluation has judged.
    pub direct: DirectFigures,
    /// How many scenarios were run.
    pub scenarios_run: u64,
    /// The virtual time of all of these.
    pub simulated: Duration,
    /// The time that the check took.
    pub took: Duration,
}

/// Checks a guest. `progress` is called before each primary of direct evaluation, before each case,
/// and before each try to make a failing one smaller.
///
/// # Errors
/// If the guest cannot be run on the simulated cluster.
pub fn check(
    runner: &ScenarioRunner,
    budget: &Budget,
    mut progress: impl FnMut(Progress),
) -> Result<CheckReport, RunError> {
    let began = Instant::now();
    let mut oracle = Oracle::new(runner);
    let subject = runner.subject();
    let (variants, properties) = variants::of(subject);
    let baselines = baselines(&mut oracle, subject, budget.seed)?;
    let two_primary_baselines = if budget.laws.contains(&Law::Exploration) {
        two_primary_baselines(&mut oracle, subject, budget.seed)?
    } else {
        Vec::new()
    };
    let generator = CaseGenerator {
        subject,
        seed: budget.seed,
        has_hostile_module: runner.hostile_module().is_some(),
        variants: &variants,
        baselines: &baselines,
        two_primary_baselines: &two_primary_baselines,
    };
    let start = Instant::now();
    let Found { figures: direct, mut broken } = direct::search(
        (runner, &mut oracle),
        budget,
        &variants,
        budget.time / DIRECT_SHARE,
        |primaries| progress(Progress::Direct(primaries)),
    )?;
    let mut results = Vec::new();
    for (index, law) in budget.laws.iter().enumerate() {
        let laws_left = u32::try_from(budget.laws.len() - index).unwrap_or(u32::MAX);
        let end = Instant::now() + budget.time.saturating_sub(start.elapsed()) / laws_left;
        let mut check = LawCheck { runner, oracle: &mut oracle, generator: &generator, budget };
        let result = match broken.remove(law) {
            Some(shrunk) => check.found_directly(*law, shrunk)?,
            None => check.check(*law, end, &mut progress)?,
        };
        results.push(LawResult { direct: direct.evaluations_of(*law), ..result });
    }
    let Oracle { scenarios_run, simulated, .. } = oracle;
    let states = baselines.iter().filter_map(|baseline| baseline.outcome.states.last());
    let not_served = states.flat_map(ClusterState::not_served).cloned().collect();
    let took = began.elapsed();
    let laws = results;
    Ok(CheckReport { laws, properties, not_served, direct, scenarios_run, simulated, took })
}

/// Runs the lifecycle of each sample without faults.
///
/// # Errors
/// If one cannot be run, the API server refuses a sample, or the host writes nothing for any.
fn baselines(
    oracle: &mut Oracle<'_>,
    subject: &Subject,
    seed: u64,
) -> Result<Vec<Baseline>, RunError> {
    let mut baselines = Vec::new();
    for sample in &subject.samples {
        let scenario = lifecycle(seed, sample);
        let outcome = oracle.reference(&scenario)?;
        if let Some(refused) = outcome.refused_steps.first() {
            return Err(RunError::Sample(refused.clone()));
        }
        baselines.push(Baseline { scenario, outcome });
    }
    if baselines.iter().all(|baseline| baseline.outcome.writes().next().is_none()) {
        let failures = baselines.iter().flat_map(|baseline| &baseline.outcome.guest_failures);
        let reasons: BTreeSet<&str> = failures.map(|(reason, _)| reason.as_str()).collect();
        return Err(RunError::Idle(reasons.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(baselines)
}

/// Runs the lifecycle of each sample together with a second primary, without faults.
///
/// # Errors
/// If one cannot be run.
fn two_primary_baselines(
    oracle: &mut Oracle<'_>,
    subject: &Subject,
    seed: u64,
) -> Result<Vec<Baseline>, RunError> {
    let run = |sample| {
        let scenario = explore::two_primary_lifecycle(seed, sample);
        let outcome = oracle.reference(&scenario)?;
        Ok(Baseline { scenario, outcome })
    };
    subject.samples.iter().map(run).collect()
}

/// Checks one law.
struct LawCheck<'a, 'r> {
    runner: &'r ScenarioRunner,
    oracle: &'a mut Oracle<'r>,
    generator: &'a CaseGenerator<'a>,
    budget: &'a Budget,
}

impl LawCheck<'_, '_> {
    /// The result of a law that direct evaluation has found broken, and its scenario too.
    ///
    /// # Errors
    /// If the scenario cannot be run again.
    fn found_directly(&self, law: Law, shrunk: Shrunk) -> Result<LawResult, RunError> {
        let broken = Some(Trace::of(self.runner, shrunk)?);
        Ok(LawResult {
            checked: 1,
            broken,
            ..nothing_checked(law, self.generator.cases(law).len())
        })
    }

    /// Checks the cases of a law until one breaks it, there are no more, or the time is over.
    ///
    /// # Errors
    /// If a scenario cannot be run.
    fn check(
        &mut self,
        law: Law,
        end: Instant,
        progress: &mut impl FnMut(Progress),
    ) -> Result<LawResult, RunError> {
        let all = self.generator.cases(law);
        let mut result = nothing_checked(law, all.len());
        let mut random = fastrand::Rng::with_seed(self.budget.seed);
        let mut corpus = Corpus::default();
        let mut listed = spread(all);
        while result.checked < self.budget.cases_max {
            if result.checked > 0 && Instant::now() >= end {
                break;
            }
            let next = listed.next().or_else(|| corpus.next(self.generator, law, &mut random));
            let Some(case) = next else { break };
            progress(Progress::Law(law, result.checked, result.cases));
            result.checked += 1;
            let judgement = self.oracle.judge(&case)?;
            corpus.take(&case, self.oracle.take_signature());
            match judgement {
                Judgement::Holds => {}
                Judgement::Inconclusive => result.inconclusive += 1,
                Judgement::Broken(violation) => {
                    let until = Instant::now() + self.budget.shrink_time;
                    let shrunk = shrink(self.oracle, case, violation, || {
                        progress(Progress::Law(
                            law,
                            result.checked.saturating_sub(1),
                            result.cases,
                        ));
                        Instant::now() < until
                    })?;
                    result.broken = Some(Trace::of(self.runner, shrunk)?);
                    break;
                }
            }
        }
        result.signature_parts = corpus.seen();
        Ok(result)
    }
}

/// The result of a law before its first case.
fn nothing_checked(law: Law, cases: usize) -> LawResult {
    LawResult {
        law,
        cases,
        checked: 0,
        inconclusive: 0,
        signature_parts: 0,
        direct: 0,
        broken: None,
    }
}

/// The cases in an order in which each part of the list comes early: if the time does not suffice
/// for all, every part is checked a little. Cases next to each other differ in the fault, so no
/// step of the order may be even.
fn spread(cases: Vec<Case>) -> impl Iterator<Item = Case> {
    let count = cases.len();
    // Near the golden section, which spreads the first indices best.
    let mut steps = (1..=count * 618 / 1_000).rev();
    let step = steps.find(|step| step % 2 == 1 && gcd(*step, count) == 1).unwrap_or(1);
    let mut cases: Vec<Option<Case>> = cases.into_iter().map(Some).collect();
    (0..count).filter_map(move |index| cases[index * step % count].take())
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::law::Expectation;
    use crate::scenario::Scenario;

    #[test]
    fn order_has_all_cases_once_and_both_parities_early() {
        for count in [1, 2, 3, 16, 88, 308] {
            let case = |seed| Case {
                law: Law::Crash,
                scenario: Scenario::new(seed, Vec::new()),
                expectation: Expectation::Nothing,
            };
            let order: Vec<u64> =
                spread((0..count).map(case).collect()).map(|case| case.scenario.seed).collect();
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len() as u64, count);
            let parities: BTreeSet<u64> = order.iter().take(4).map(|index| index % 2).collect();
            assert!(count < 2 || parities.len() == 2, "{count}: {order:?}");
        }
    }
}
