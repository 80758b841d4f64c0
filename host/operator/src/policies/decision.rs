//! What a review decided, whatever the mode makes of it.

/// What a review decided, whatever the mode makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The request is allowed as it is.
    Allowed,
    /// The request is allowed with a changed object.
    Changed,
    /// The request is denied.
    Denied,
    /// No policy reviews such a request, so it is allowed without a call.
    Excluded,
    /// The policy gave no verdict that counts.
    Failed,
}

impl Decision {
    /// The decision as a metric has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Changed => "changed",
            Self::Denied => "denied",
            Self::Excluded => "excluded",
            Self::Failed => "failed",
        }
    }
}
