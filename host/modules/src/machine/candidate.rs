//! The candidate of a module: the component that is on its way to become active.

use super::rejection::{Rejection, RetryPolicy};
use crate::rollout::Preview;
use crate::source::Digest;

/// The name of the state of a candidate that is refused.
pub const REJECTED: &str = "Rejected";

/// The candidate, and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Candidate {
    /// None: the present source is active, or there is none.
    #[default]
    Nothing,
    /// The snapshot of the revision that was active before the host started is fetched, since the
    /// source has another component.
    RestoringSnapshot(Digest),
    /// The component is compiled and asked to describe itself.
    Loading(Digest),
    /// The component is checked, and runs without writes while the active revision runs.
    Previewing(LoadedCandidate),
    /// It requires an approval, for this reason.
    Held(LoadedCandidate, Box<HeldCandidate>),
    /// Its CustomResourceDefinitions are installed.
    InstallingCrds(LoadedCandidate),
    /// It is decided; the host writes the decision.
    Committing(LoadedCandidate),
    /// It is refused.
    Rejected(Digest, Rejection),
    /// The Module is being deleted: there are no candidates any more.
    ModuleDeleted,
}

impl Candidate {
    /// The component; `None` without a candidate.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing | Self::ModuleDeleted => None,
            Self::RestoringSnapshot(digest) | Self::Loading(digest) | Self::Rejected(digest, _) => {
                Some(*digest)
            }
            _ => self.loaded().map(|loaded| loaded.digest),
        }
    }

    /// The loaded component, if it is loaded and not refused.
    pub fn loaded(&self) -> Option<&LoadedCandidate> {
        match self {
            Self::Previewing(loaded)
            | Self::Held(loaded, _)
            | Self::InstallingCrds(loaded)
            | Self::Committing(loaded) => Some(loaded),
            _ => None,
        }
    }

    /// Whether it is being fetched or loaded. There is one load at a time: when it ends, the source
    /// is evaluated again.
    pub(super) fn is_loading(&self) -> bool {
        matches!(self, Self::Loading(_) | Self::RestoringSnapshot(_))
    }

    /// The name of its state.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Nothing => "NoCandidate",
            Self::RestoringSnapshot(_) => "RestoringSnapshot",
            Self::Loading(_) => "Loading",
            Self::Previewing(_) => "Previewing",
            Self::Held(..) => "Held",
            Self::InstallingCrds(_) => "InstallingCRDs",
            Self::Committing(_) => "Committing",
            Self::Rejected(..) => REJECTED,
            Self::ModuleDeleted => "Finalizing",
        }
    }
}

/// Why a candidate is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCandidate {
    /// What it would change.
    pub preview: Preview,
    /// Why that requires an approval.
    pub rejection: Rejection,
    /// What the approval names: the component, or the change of definitions.
    pub approval: Digest,
}

impl HeldCandidate {
    /// Whether the cause may go by itself, so that the host repeats the preview of this component.
    pub(super) fn may_end_by_itself(&self, digest: Digest) -> bool {
        self.approval == digest && self.rejection.retry == RetryPolicy::Later
    }
}

/// A component that is loaded and checked, and not active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedCandidate {
    /// The component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
    /// Whether it has a policy whose mode is Enforce, anywhere.
    pub enforces: bool,
}

/// What the machine keeps about the candidate over several tries.
#[derive(Clone, Debug, Default)]
pub(super) struct CandidateProgress {
    /// The spec changed while the candidate was loaded: the result is about the old limits.
    pub(super) is_outdated: bool,
    /// A loaded component that was refused for its definitions only: another try does not load it.
    pub(super) reusable: Option<LoadedCandidate>,
    /// The candidate that is tried again, and why it was refused: that stays in status and Events
    /// until the new result is known, so that they do not flap.
    pub(super) retried: Option<(Digest, Rejection)>,
    /// The preview of the held candidate is repeated.
    pub(super) is_previewed_again: bool,
}
