//! How much direct evaluation has judged.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::law::Law;

/// The most suspicions that are kept with their text.
const SUSPICIONS_MAX: usize = 10;

/// How much direct evaluation has judged.
#[derive(Clone, Debug, Default)]
pub struct DirectFigures {
    /// The primaries that the API server accepts.
    pub primaries: u64,
    /// The primaries that it refuses: no law says anything about them.
    pub refused: u64,
    /// The calls of the guest.
    pub calls: u64,
    /// How many primaries were judged, by law. Each is one evaluation of the law.
    pub evaluations: BTreeMap<Law, u64>,
    /// How many suspicions no scenario confirmed.
    pub unconfirmed: u64,
    /// The first of these, each once: the law and what seemed to break it.
    pub suspicions: Vec<(Law, String)>,
    /// The time of the evaluations, without that of the scenarios that decide.
    pub took: Duration,
}

impl DirectFigures {
    /// The evaluations of all laws.
    pub fn all_evaluations(&self) -> u64 {
        self.evaluations.values().sum()
    }

    /// The evaluations of one law.
    pub fn evaluations_of(&self, law: Law) -> u64 {
        self.evaluations.get(&law).copied().unwrap_or(0)
    }

    pub(super) fn count(&mut self, law: Law) {
        *self.evaluations.entry(law).or_default() += 1;
    }

    pub(super) fn count_unconfirmed(&mut self, law: Law, what: &str) {
        self.unconfirmed += 1;
        let is_known = self.suspicions.iter().any(|known| known.0 == law && known.1 == what);
        if !is_known && self.suspicions.len() < SUSPICIONS_MAX {
            self.suspicions.push((law, what.to_owned()));
        }
    }
}
