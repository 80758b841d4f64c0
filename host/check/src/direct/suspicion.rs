//! What seems to break a law, and the cases by which scenarios decide about it.

use std::sync::Arc;

use serde_json::Value;

use crate::case_generator::apply_and_settle;
use crate::law::{Case, Expectation, Law};
use crate::scenario::{Scenario, Step};

/// What seems to break a law.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Suspicion {
    pub(super) law: Law,
    /// What is wrong, in one line, without names and values of one primary.
    pub(super) what: String,
    /// The specs that users apply under one name, one after the other.
    pub(super) specs: Vec<Arc<Value>>,
}

impl Suspicion {
    pub(super) fn new(law: Law, what: impl Into<String>) -> Self {
        Self { law, what: what.into(), specs: Vec::new() }
    }

    /// The same about these specs.
    pub(super) fn of(self, specs: &[&Arc<Value>]) -> Self {
        Self { specs: specs.iter().map(|one| Arc::clone(one)).collect(), ..self }
    }

    /// Whether another one is about the same law and the same thing.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.law == other.law && self.what == other.what
    }

    /// The case of the law.
    pub(super) fn case(&self, seed: u64) -> Option<Case> {
        let (first, later) = self.specs.split_first()?;
        let mut scenario = apply_and_settle(seed, first);
        let expectation = match self.law {
            Law::Totality => {
                scenario = Scenario::new(seed, vec![Step::Apply((**first).clone())]);
                Expectation::AllAccepted
            }
            Law::Determinism => Expectation::AsWithAnotherSeed,
            Law::Fixpoint => {
                scenario.steps.extend([Step::Restart, Step::Wait(60)]);
                Expectation::NoWriteAfterRestart
            }
            Law::PathIndependence | Law::Rollback => {
                for (index, spec) in later.iter().enumerate() {
                    if index > 0 {
                        scenario.steps.push(Step::Settle);
                    }
                    scenario.steps.push(Step::Replace((**spec).clone()));
                }
                Expectation::AsWithTheLastSpecAlone
            }
            _ => Expectation::Nothing,
        };
        Some(Case { law: self.law, scenario, expectation })
    }
}
