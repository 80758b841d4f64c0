//! What is on its way to serve.

use super::Verdict;
use crate::rollout::Rehearsal;
use crate::source::Digest;

/// The name of the state of a candidate that is refused.
pub const REJECTED: &str = "Rejected";

/// What is on its way to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Nothing: the present source serves, or there is none.
    Nothing,
    /// What served when the host was here last is fetched from its copy, since the source has
    /// something else.
    Recalling(Digest),
    /// It is compiled aside and asked to describe itself.
    Loading(Digest),
    /// It is checked, and run without writing, beside what serves.
    Rehearsing(Aside),
    /// It needs a person's word, for this reason.
    Held(Aside, Box<(Rehearsal, Verdict)>),
    /// Its CustomResourceDefinitions are installed.
    InstallingCrds(Aside),
    /// It will serve; that is written down.
    Committing(Aside),
    /// It is refused.
    Rejected(Digest, Verdict),
    /// None comes any more: the Module is being deleted.
    Leaving,
}

impl Candidate {
    /// Which component it is; none if it is nothing.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing | Self::Leaving => None,
            Self::Recalling(digest) | Self::Loading(digest) | Self::Rejected(digest, _) => {
                Some(*digest)
            }
            Self::Rehearsing(aside)
            | Self::Held(aside, _)
            | Self::InstallingCrds(aside)
            | Self::Committing(aside) => Some(aside.digest),
        }
    }

    /// The name of its state.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Nothing => "Nothing",
            Self::Recalling(_) => "RestoringSnapshot",
            Self::Loading(_) => "Loading",
            Self::Rehearsing(_) => "Previewing",
            Self::Held(..) => "Held",
            Self::InstallingCrds(_) => "InstallingCRDs",
            Self::Committing(_) => "Committing",
            Self::Rejected(..) => REJECTED,
            Self::Leaving => "Finalizing",
        }
    }
}

/// A component that is loaded and checked, and does not serve yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Which component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
}
