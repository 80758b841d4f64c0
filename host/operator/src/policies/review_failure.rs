//! The reasons for which a review gives no verdict: [`ReviewFailure`].

use innkeeper_admission::patch::PatchError;
use innkeeper_core::foreign;
use innkeeper_core::review::{DocumentError, InvalidVerdict};
use innkeeper_sandbox::CallError;

/// The longest reason, in bytes.
const REASON_BYTES_MAX: usize = 1_000;

/// Why a review gives no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewFailure {
    /// The request cannot be shown to the policy.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// The call of the guest failed.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The policy says that it cannot decide.
    #[error("the policy cannot decide: {0}")]
    Undecided(String),
    /// The verdict does not count.
    #[error("{0}")]
    Verdict(#[from] InvalidVerdict),
    /// The change has no patch.
    #[error("{0}")]
    Patch(#[from] PatchError),
    /// The other reviews leave no time for this one.
    #[error("no time is left for the review: other reviews take it; send the request again later")]
    NoTime,
}

impl ReviewFailure {
    /// A word for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Document(error) => error.reason(),
            Self::Call(error) => error.reason(),
            Self::Undecided(_) => "Undecided",
            Self::Verdict(error) => error.reason(),
            Self::Patch(PatchError::TooManyOperations) => "TooManyChanges",
            Self::Patch(PatchError::TooLarge(_)) => "PatchTooLarge",
            Self::Patch(PatchError::Differs) => "PatchDiffers",
            Self::NoTime => "Overloaded",
        }
    }

    /// Whether other reviews left no time for this one, so that the policy is not the cause.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::NoTime | Self::Call(CallError::Busy { .. }))
    }

    /// Whether the revision may be the cause. It is not if the request cannot be shown to any
    /// policy, or found no time.
    pub fn is_of_revision(&self) -> bool {
        let is_of_request = matches!(
            self,
            Self::Document(_)
                | Self::Call(
                    CallError::RequestTooLarge { .. } | CallError::RequestUnreadable { .. }
                )
        );
        !is_of_request && !self.is_overload()
    }

    /// One line with the reason, bounded and visible.
    pub fn line(&self) -> String {
        foreign::one_line(self, REASON_BYTES_MAX)
    }

    /// The failure as the user of the request reads it.
    pub fn message(&self, module: &str) -> String {
        let line = self.line();
        format!(
            "policy {module} failed: {line}; see the log and `kubectl describe module {module}`"
        )
    }
}
