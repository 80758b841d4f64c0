//! Checks the laws, within a budget of time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cases::{self, Material};
use crate::explore::{self, Corpus};
use crate::law::{Case, Judgement, Law};
use crate::oracle::Oracle;
use crate::play_error::PlayError;
use crate::player::Player;
use crate::shrink::shrink;
use crate::trace::Trace;
use crate::variants;

/// How much is checked.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The seed of everything random.
    pub seed: u64,
    /// The laws.
    pub laws: Vec<Law>,
    /// The time for all laws together; each gets an equal part, and what others leave.
    pub time: Duration,
    /// The most cases of each law.
    pub cases_max: usize,
    /// The time to make one failing scenario smaller.
    pub shrink_time: Duration,
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
    pub not_judged: usize,
    /// How many different parts the signatures of the checked cases have: requests with their
    /// answers and successors, and reasons of conditions, Events and failures.
    pub signature_parts: usize,
    /// The smallest scenario that breaks the law, if one does.
    pub broken: Option<Trace>,
}

impl LawResult {
    /// Whether the law says something about at least one of the checked cases.
    pub fn is_judged(&self) -> bool {
        self.checked > self.not_judged
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
    /// How many scenarios were played.
    pub played: u64,
    /// The virtual time of all of these.
    pub simulated: Duration,
    /// The time that the check took.
    pub took: Duration,
}

/// Checks a guest. `progress` is called before each case, and before each try to make a failing one
/// smaller, with the law and how many of its cases were checked and are listed.
///
/// # Errors
/// If the guest cannot be run on the simulated cluster.
pub fn check(
    player: &Player,
    budget: &Budget,
    mut progress: impl FnMut(Law, usize, usize),
) -> Result<CheckReport, PlayError> {
    let began = Instant::now();
    let mut oracle = Oracle::new(player);
    let subject = player.subject();
    let (variants, properties) = variants::of(subject);
    let mut lives = Vec::new();
    for sample in &subject.samples {
        let life = cases::whole_life(budget.seed, sample);
        let outcome = oracle.reference(&life)?;
        if let Some(refused) = outcome.refused_steps.first() {
            return Err(PlayError::Sample(refused.clone()));
        }
        lives.push((life, outcome));
    }
    if lives.iter().all(|(_, outcome)| outcome.writes().next().is_none()) {
        let failures = lives.iter().flat_map(|(_, outcome)| &outcome.guest_failures);
        let reasons: BTreeSet<&str> = failures.map(|(reason, _)| reason.as_str()).collect();
        return Err(PlayError::Idle(reasons.into_iter().collect::<Vec<_>>().join(", ")));
    }
    let mut pairs = Vec::new();
    for sample in subject.samples.iter().filter(|_| budget.laws.contains(&Law::Exploration)) {
        let life = explore::pair(budget.seed, sample);
        let outcome = oracle.reference(&life)?;
        pairs.push((life, outcome));
    }
    let material = Material {
        subject,
        seed: budget.seed,
        has_neighbor: player.neighbor().is_some(),
        variants: &variants,
        lives: &lives,
        pairs: &pairs,
    };
    let start = Instant::now();
    let mut results = Vec::new();
    for (index, law) in budget.laws.iter().enumerate() {
        let laws_left = u32::try_from(budget.laws.len() - index).unwrap_or(u32::MAX);
        let end = Instant::now() + budget.time.saturating_sub(start.elapsed()) / laws_left;
        let all = material.cases(*law);
        let mut result = LawResult {
            law: *law,
            cases: all.len(),
            checked: 0,
            not_judged: 0,
            signature_parts: 0,
            broken: None,
        };
        let mut random = fastrand::Rng::with_seed(budget.seed);
        let mut corpus = Corpus::default();
        let mut listed = spread(all);
        while result.checked < budget.cases_max {
            if result.checked > 0 && Instant::now() >= end {
                break;
            }
            let next = listed.next().or_else(|| corpus.next(&material, *law, &mut random));
            let Some(case) = next else { break };
            progress(*law, result.checked, result.cases);
            result.checked += 1;
            let judgement = oracle.judge(&case)?;
            corpus.take(&case, oracle.take_signature());
            if judgement == Judgement::NotJudged {
                result.not_judged += 1;
            }
            if let Judgement::Broken(violation) = judgement {
                let until = Instant::now() + budget.shrink_time;
                let shrunk = shrink(&mut oracle, case, violation, || {
                    progress(*law, result.checked.saturating_sub(1), result.cases);
                    Instant::now() < until
                })?;
                result.broken = Some(Trace::of(player, shrunk)?);
                break;
            }
        }
        result.signature_parts = corpus.seen();
        results.push(result);
    }
    let Oracle { played, simulated, .. } = oracle;
    Ok(CheckReport { laws: results, properties, played, simulated, took: began.elapsed() })
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
