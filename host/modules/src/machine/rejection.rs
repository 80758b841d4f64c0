//! Why a candidate or a spec is refused, and when it may be tried again.

/// When what is refused may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Never: the bytes themselves are the cause.
    Never,
    /// When the Module's spec changes: limits, parameters or allowedCRDGroups may be the cause.
    WhenSpecChanges,
    /// After a backoff: the cause is elsewhere. Also when the spec changes.
    Later,
}

/// Why a candidate or a spec is refused.
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
    /// A rejection with the parts in the order of the fields.
    pub fn new(reason: impl Into<String>, message: impl Into<String>, retry: RetryPolicy) -> Self {
        Self { reason: reason.into(), message: message.into(), retry }
    }
}
