//! What is on its way to serve.

use super::Rejection;
use crate::rollout::Preview;
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
    RestoringSnapshot(Digest),
    /// It is compiled aside and asked to describe itself.
    Loading(Digest),
    /// It is checked, and run without writing, beside what serves.
    Previewing(LoadedCandidate),
    /// It needs a person's word, for this reason.
    Held(LoadedCandidate, Box<(Preview, Rejection)>),
    /// Its CustomResourceDefinitions are installed.
    InstallingCrds(LoadedCandidate),
    /// It will serve; that is written down.
    Committing(LoadedCandidate),
    /// It is refused.
    Rejected(Digest, Rejection),
    /// None comes any more: the Module is being deleted.
    Teardown,
}

impl Candidate {
    /// Which component it is; none if it is nothing.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing | Self::Teardown => None,
            Self::RestoringSnapshot(digest) | Self::Loading(digest) | Self::Rejected(digest, _) => {
                Some(*digest)
            }
            Self::Previewing(loaded_candidate)
            | Self::Held(loaded_candidate, _)
            | Self::InstallingCrds(loaded_candidate)
            | Self::Committing(loaded_candidate) => Some(loaded_candidate.digest),
        }
    }

    /// The name of its state.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Nothing => "Nothing",
            Self::RestoringSnapshot(_) => "RestoringSnapshot",
            Self::Loading(_) => "Loading",
            Self::Previewing(_) => "Previewing",
            Self::Held(..) => "Held",
            Self::InstallingCrds(_) => "InstallingCRDs",
            Self::Committing(_) => "Committing",
            Self::Rejected(..) => REJECTED,
            Self::Teardown => "Finalizing",
        }
    }
}

/// A component that is loaded and checked, and does not serve yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedCandidate {
    /// Which component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
}
