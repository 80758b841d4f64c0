//! Why definitions are not installed.

use crate::machine::Rejection;
use crate::rollout::Example;
use crate::source::Digest;

/// Why definitions are not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdRefusal {
    /// One cannot be installed or used.
    Rejected(Rejection),
    /// They can be installed once a user has approved it.
    Held(Box<HeldCrds>),
}

/// A change of foreign definitions that takes something away, and so requires an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCrds {
    /// The digest of the definitions before and after the change; an approval names it.
    pub approval: Digest,
    /// The changes, one for each definition.
    pub changes: Vec<Example>,
    /// Why it is held.
    pub rejection: Rejection,
}

impl CrdRefusal {
    /// Why they are refused, or held.
    pub fn rejection(&self) -> &Rejection {
        match self {
            Self::Rejected(rejection) => rejection,
            Self::Held(held) => &held.rejection,
        }
    }

    /// Why they are refused, or held.
    #[must_use]
    pub fn into_rejection(self) -> Rejection {
        match self {
            Self::Rejected(rejection) => rejection,
            Self::Held(held) => held.rejection,
        }
    }
}

impl From<Rejection> for CrdRefusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}
