//! The mode of a policy, and its failure policy.

use serde::{Deserialize, Serialize};

/// What a verdict of a policy does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// Denied requests fail, and changes are made.
    #[default]
    Enforce,
    /// No request fails or is changed; the user sees a warning.
    Warn,
    /// No request fails or is changed; only the audit log and metrics show what `Enforce` would do.
    Audit,
}

/// What the API server does with a request for which it gets no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The request is denied.
    Fail,
    /// The request is allowed.
    Ignore,
}
