//! Why something is refused, and when it may be tried again.

/// When a refused thing may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never: the bytes themselves are at fault.
    Never,
    /// When the Module's spec changes (limits, parameters, allowedCRDGroups enter the verdict).
    WhenSpecChanges,
    /// After a while: the trouble is elsewhere. Also when the spec changes.
    Later,
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// One CamelCase word: the reason of the condition and of the Event.
    pub reason: String,
    /// What is wrong and what to do; stable text.
    pub message: String,
    /// When it may be tried again.
    pub retry: RetryPolicy,
}

impl Rejection {
    /// A verdict.
    pub fn new(reason: impl Into<String>, message: impl Into<String>, retry: RetryPolicy) -> Self {
        Self { reason: reason.into(), message: message.into(), retry }
    }
}
