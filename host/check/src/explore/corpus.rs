//! The cases that showed something new: [`Corpus`].

use crate::case_generator::CaseGenerator;
use crate::explore::mutation::mutated;
use crate::explore::signature::Signature;
use crate::law::{Case, Law};

/// The most cases that are kept; the oldest go first.
const CASES_MAX: usize = 200;

/// The cases of a law whose signatures had a part that no case before had.
#[derive(Default)]
pub(crate) struct Corpus {
    seen: Signature,
    cases: Vec<Case>,
}

impl Corpus {
    /// Takes what a case showed.
    pub(crate) fn take(&mut self, case: &Case, signature: Signature) {
        if !self.seen.add(signature) {
            return;
        }
        if self.cases.len() == CASES_MAX {
            self.cases.remove(0);
        }
        self.cases.push(case.clone());
    }

    /// The number of parts that all signatures so far have together.
    pub(crate) fn seen(&self) -> usize {
        self.seen.len()
    }

    /// The next case after the listed ones: half of the time a kept case with a mutation, else a
    /// random one. `None` for a law that has neither.
    pub(crate) fn next(
        &self,
        generator: &CaseGenerator<'_>,
        law: Law,
        random: &mut fastrand::Rng,
    ) -> Option<Case> {
        if random.bool()
            && let Some(case) = random.choice(&self.cases)
            && let Some(case) = mutated(case, &self.cases, generator, random)
        {
            return Some(case);
        }
        generator.random_case(law, random)
    }
}
