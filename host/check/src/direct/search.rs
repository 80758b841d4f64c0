//! Searches for primaries that break a law, and has scenarios decide about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::evaluator::{Evaluator, Settled};
use super::figures::DirectFigures;
use super::suspicion::Suspicion;
use crate::budget::Budget;
use crate::law::{Judgement, Law};
use crate::oracle::Oracle;
use crate::primary_generator::PrimaryGenerator;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
use crate::scenario::name_of;
use crate::shrink::{Shrunk, members, remove, shrink};

/// The laws that calls of the guest alone can break.
const LAWS: [Law; 7] = [
    Law::Totality,
    Law::Convergence,
    Law::Determinism,
    Law::Fixpoint,
    Law::PathIndependence,
    Law::Rollback,
    Law::NoLeak,
];

/// So many suspicions of one kind go to scenarios: if these confirm none, the others only count.
const TRIES_MAX: u32 = 3;

/// The most primaries by which one suspicion is made smaller.
const SHRINK_MAX: usize = 2_000;

/// What a search has found.
pub(crate) struct Found {
    pub(crate) figures: DirectFigures,
    /// The laws that a scenario has shown to be broken.
    pub(crate) broken: BTreeMap<Law, Shrunk>,
}

/// Searches until the budget's primaries or `time` are used up, or all laws are broken. `progress`
/// is called with the number of primaries.
///
/// # Errors
/// If the guest cannot be called, or a scenario cannot be run.
pub(crate) fn search(
    (runner, oracle): (&ScenarioRunner, &mut Oracle<'_>),
    budget: &Budget,
    variants: &[Value],
    time: Duration,
    mut progress: impl FnMut(u64),
) -> Result<Found, RunError> {
    let mut laws: Vec<Law> = budget.laws.clone();
    laws.retain(|law| LAWS.contains(law));
    let mut found = Found { figures: DirectFigures::default(), broken: BTreeMap::new() };
    if laws.is_empty() || budget.primaries_max == 0 {
        return Ok(found);
    }
    let began = Instant::now();
    let mut evaluator = Evaluator::new(runner, &laws, budget.seed)?;
    let accepted = |primary: &Value| evaluator.is_accepted(primary);
    let mut generator = PrimaryGenerator::new(runner.subject(), variants, budget.seed, accepted);
    let mut confirmation = Confirmation { oracle, budget, tries: BTreeMap::new() };
    // The last primary of each name, from which the spec changes to the next one.
    let mut last: BTreeMap<String, Settled> = BTreeMap::new();
    let mut confirming = Duration::ZERO;
    for count in 0..budget.primaries_max {
        let is_over = count > 0 && began.elapsed().saturating_sub(confirming) >= time;
        if is_over || laws_left(&laws, &found).next().is_none() {
            break;
        }
        let Some(primary) = generator.next() else { break };
        progress(evaluator.figures.primaries);
        let (settled, mut suspicions) = evaluator.judge(&primary);
        if let Some(settled) = settled {
            let name = name_of(&primary);
            if let Some(before) = last.get(&name).filter(|_| suspicions.is_empty()) {
                suspicions.extend(evaluator.judge_path(before, &settled));
            }
            last.insert(name, settled);
        }
        for suspicion in suspicions {
            let start = Instant::now();
            if !found.broken.contains_key(&suspicion.law) {
                confirmation.decide(&suspicion, &mut evaluator, &mut found, &mut progress)?;
            }
            confirming += start.elapsed();
        }
    }
    evaluator.figures.took = began.elapsed().saturating_sub(confirming);
    found.figures = evaluator.figures;
    Ok(found)
}

fn laws_left<'l>(laws: &'l [Law], found: &'l Found) -> impl Iterator<Item = &'l Law> {
    laws.iter().filter(|law| !found.broken.contains_key(law))
}

/// Has scenarios decide about suspicions.
struct Confirmation<'a, 'r> {
    oracle: &'a mut Oracle<'r>,
    budget: &'a Budget,
    /// How many suspicions of each kind went to scenarios.
    tries: BTreeMap<(Law, String), u32>,
}

impl Confirmation<'_, '_> {
    /// Makes a suspicion smaller, and has a scenario decide.
    ///
    /// # Errors
    /// If the scenario cannot be run.
    fn decide(
        &mut self,
        suspicion: &Suspicion,
        evaluator: &mut Evaluator<'_>,
        found: &mut Found,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), RunError> {
        let tries = self.tries.entry((suspicion.law, suspicion.what.clone())).or_default();
        if *tries >= TRIES_MAX {
            evaluator.figures.count_unconfirmed(suspicion.law, &suspicion.what);
            return Ok(());
        }
        *tries += 1;
        // Evaluations that only make a suspicion smaller do not count.
        let figures = evaluator.figures.clone();
        let smallest = smallest(suspicion, evaluator);
        evaluator.figures = figures;
        for candidate in [&smallest, suspicion] {
            let Some(case) = candidate.case(self.budget.seed) else { continue };
            progress(evaluator.figures.primaries);
            if let Judgement::Broken(violation) = self.oracle.judge(&case)? {
                let until = Instant::now() + self.budget.shrink_time;
                let shrunk = shrink(self.oracle, case, violation, || {
                    progress(evaluator.figures.primaries);
                    Instant::now() < until
                })?;
                found.broken.insert(suspicion.law, shrunk);
                return Ok(());
            }
            if smallest.specs == suspicion.specs {
                break;
            }
        }
        evaluator.figures.count_unconfirmed(suspicion.law, &suspicion.what);
        Ok(())
    }
}

/// The suspicion with specs that have as few members as possible.
fn smallest(suspicion: &Suspicion, evaluator: &mut Evaluator<'_>) -> Suspicion {
    let mut best = suspicion.clone();
    let mut tried = 0;
    loop {
        let before = tried;
        let mut is_smaller = false;
        for index in 0..best.specs.len() {
            let mut place = 0;
            while let Some(path) = members(&best.specs[index]).into_iter().nth(place) {
                if tried >= SHRINK_MAX {
                    return best;
                }
                tried += 1;
                let mut spec = (*best.specs[index]).clone();
                remove(&mut spec, &path);
                let mut specs = best.specs.clone();
                specs[index] = Arc::new(spec);
                match still_suspicious(&best, &specs, evaluator) {
                    Some(smaller) => (best, is_smaller) = (smaller, true),
                    None => place += 1,
                }
            }
        }
        if !is_smaller || tried == before {
            return best;
        }
    }
}

/// The same suspicion about other specs, if they arouse it.
fn still_suspicious(
    suspicion: &Suspicion,
    specs: &[Arc<Value>],
    evaluator: &mut Evaluator<'_>,
) -> Option<Suspicion> {
    let (settled, suspicions) = evaluator.judge(&specs[0]);
    let suspicions = match specs.get(1) {
        None => suspicions,
        Some(second) => {
            let (first, second) = (settled?, evaluator.judge(second).0?);
            evaluator.judge_path(&first, &second)
        }
    };
    suspicions.into_iter().find(|one| one.is_like(suspicion))
}
