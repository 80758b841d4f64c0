//! The kinds of decisions: [`DecisionKind`].

/// The kind of a decision, before the mode of the policy is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionKind {
    /// The request is allowed as it is.
    Allowed,
    /// The request is allowed with a changed object.
    Changed,
    /// The request is denied.
    Denied,
    /// No policy reviews such a request, so it is allowed without a call.
    Excluded,
    /// The review gave no valid verdict.
    Failed,
}

impl DecisionKind {
    /// The value of the label `decision` of metrics.
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
