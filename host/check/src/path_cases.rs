//! Cases with several specs after each other under one name.

use crate::case_generator::{CaseGenerator, named_as};
use crate::scenario::{Scenario, Step};

impl CaseGenerator<'_> {
    /// Two specs after each other under one name, with and without time in between.
    pub(crate) fn paths(&self) -> impl Iterator<Item = Scenario> {
        let mut scenarios = Vec::new();
        let samples = &self.subject.samples;
        for sample in samples {
            let others = samples.iter().filter(|other| *other != sample).chain(self.variants);
            for other in others {
                let other = named_as(other.clone(), sample);
                for between in [Some(Step::Settle), None, Some(Step::Wait(1))] {
                    let mut steps = vec![Step::Apply(sample.clone())];
                    steps.extend(between);
                    steps.push(Step::Replace(other.clone()));
                    scenarios.push(Scenario::new(self.seed, steps));
                }
            }
        }
        scenarios.into_iter()
    }
}
