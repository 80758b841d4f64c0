//! What the host does with the verdict of a policy.

use serde::{Deserialize, Serialize};

/// What a verdict of a policy does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// Denied requests fail, and changes are made.
    #[default]
    Enforce,
    /// No request fails or is changed; the user sees a warning.
    Warn,
    /// No request fails or is changed; only the audit log and metrics say what would have been.
    Audit,
}

/// What happens to a request if the policy cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// The request is denied.
    Fail,
    /// The request is allowed.
    Ignore,
}
