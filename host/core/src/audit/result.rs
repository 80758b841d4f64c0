//! The result of the review of an existing object.

use serde::{Deserialize, Serialize};

/// The result of the review of an existing object, in the words of `openreports.io`. The worst
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditResult {
    /// The policy would deny the object.
    Fail,
    /// The review gave no verdict.
    Error,
    /// The policy would allow the object with a warning, or change it.
    Warn,
    /// The policy would allow the object as it is.
    Pass,
    /// The object was not reviewed.
    Skip,
}

impl AuditResult {
    /// All results, the worst first.
    pub const ALL: [Self; 5] = [Self::Fail, Self::Error, Self::Warn, Self::Pass, Self::Skip];

    /// The result as reports have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Pass => "pass",
            Self::Skip => "skip",
        }
    }

    /// The result in the words of policies, as metrics and tables have it.
    pub fn decision(self) -> &'static str {
        match self {
            Self::Fail => "denied",
            Self::Error => "failed",
            Self::Warn => "warned",
            Self::Pass => "passed",
            Self::Skip => "skipped",
        }
    }

    /// Whether reports list the object: those that pass are only counted.
    pub fn is_listed(self) -> bool {
        matches!(self, Self::Fail | Self::Error | Self::Warn)
    }
}
