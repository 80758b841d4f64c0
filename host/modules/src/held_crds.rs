//! CustomResourceDefinitions that somebody else installed, and that the host changes for a module
//! whose Module asks for it.

use crate::machine::Rejection;
use crate::rollout::Example;
use crate::source::Digest;

/// The Module lets the host change definitions that somebody else installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// The change that a user has approved, if it is one of definitions.
    pub approved: Option<Digest>,
}

/// A change of definitions that takes something away, and so requires an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCrds {
    /// The digest of the definitions before and after the change; an approval names it.
    pub approval: Digest,
    /// The changes, one for each definition.
    pub changes: Vec<Example>,
    /// Why it is held.
    pub rejection: Rejection,
}

/// Why definitions are not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdRefusal {
    /// One cannot be installed or used.
    Rejected(Rejection),
    /// They can be installed once a user has approved it.
    Held(Box<HeldCrds>),
}

impl From<Rejection> for CrdRefusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// The definitions that an installation wrote, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledCrds {
    /// Those that did not exist.
    pub created: Vec<String>,
    /// Those that somebody else had installed.
    pub adopted: Vec<String>,
}
