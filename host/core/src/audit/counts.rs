//! The number of objects for each result.

use serde::{Deserialize, Serialize};

use super::result::AuditResult;

/// How many objects had which result: the `summary` of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditCounts {
    /// Objects that the policy would allow as they are.
    pub pass: u64,
    /// Objects that the policy would deny.
    pub fail: u64,
    /// Objects that the policy would allow with a warning, or change.
    pub warn: u64,
    /// Objects whose review gave no verdict.
    pub error: u64,
    /// Objects that were not reviewed.
    pub skip: u64,
}

impl AuditCounts {
    /// The number of objects with this result.
    pub fn of(&self, result: AuditResult) -> u64 {
        match result {
            AuditResult::Fail => self.fail,
            AuditResult::Error => self.error,
            AuditResult::Warn => self.warn,
            AuditResult::Pass => self.pass,
            AuditResult::Skip => self.skip,
        }
    }

    /// Counts one object more.
    pub fn count(&mut self, result: AuditResult) {
        let count = self.of_mut(result);
        *count = count.saturating_add(1);
    }

    /// Counts one object less.
    pub fn discount(&mut self, result: AuditResult) {
        let count = self.of_mut(result);
        *count = count.saturating_sub(1);
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for result in AuditResult::ALL {
            let count = self.of_mut(result);
            *count = count.saturating_add(other.of(result));
        }
    }

    /// The number of all objects.
    pub fn total(&self) -> u64 {
        AuditResult::ALL.iter().fold(0, |sum: u64, result| sum.saturating_add(self.of(*result)))
    }

    fn of_mut(&mut self, result: AuditResult) -> &mut u64 {
        match result {
            AuditResult::Fail => &mut self.fail,
            AuditResult::Error => &mut self.error,
            AuditResult::Warn => &mut self.warn,
            AuditResult::Pass => &mut self.pass,
            AuditResult::Skip => &mut self.skip,
        }
    }
}
