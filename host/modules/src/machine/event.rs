//! What happens to a module.

use super::Verdict;
use crate::rollout::{Rehearsal, Rollout};
use crate::source::Digest;

/// What happens to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What the Module says of the time before the host started; at most once, before anything
    /// else.
    Known {
        /// What served last.
        served: Option<Digest>,
        /// What served before that.
        previous: Option<Digest>,
        /// What was rejected for good.
        rejected: Vec<(Digest, Verdict)>,
    },
    /// A person's word on versions: what the Module's annotations say now.
    Word {
        /// This version may serve, whatever it would do.
        approve: Option<Digest>,
        /// This version must not serve.
        reject: Option<Digest>,
    },
    /// Which annotations name no digest, and what to do; `None` if all do.
    InvalidApproval(Option<String>),
    /// An [`Effect::Recall`] ended: the copy is there, or why not.
    Recalled {
        /// What was to be fetched.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// An [`Effect::Rehearse`] ended: what the candidate would do, or why that is not known.
    Rehearsed {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<Rehearsal, Verdict>,
    },
    /// An [`Effect::Commit`] ended.
    Committed {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// Since the swap more primaries fail than may; the verdict says how.
    TooManyFail(Verdict),
    /// The time is over that an [`Effect::BeginProbation`] began.
    ProbationOver(Digest),
    /// The Module appeared or its spec changed.
    Spec {
        /// `metadata.generation`.
        generation: i64,
        /// Whether the spec can be used.
        spec: Result<Spec, Verdict>,
    },
    /// An [`Effect::CheckParameters`] ended: whether the present parameters fit the active revision.
    ParametersChecked(Result<(), Verdict>),
    /// The source was read: the digest of its component, or why there is none.
    Source(Result<Digest, Verdict>),
    /// An [`Effect::Load`] ended.
    Loaded {
        /// What was loaded.
        digest: Digest,
        /// What it is, or why it is refused.
        result: Result<Facts, Verdict>,
    },
    /// An [`Effect::InstallCrds`] ended: all are established, or why not.
    Crds {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// The wait of an [`Effect::RetryLater`] is over.
    Retry,
    /// How the module's runs go, when that changes.
    Runs(Result<(), Verdict>),
    /// The Module is being deleted, and waits for its finalizers.
    Deleting,
    /// An [`Effect::Leave`] ended: what was done, for people, or why not.
    Left(Result<String, Verdict>),
    /// The Module is gone.
    Deleted,
}

/// What of a usable spec the machine needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The source is another one than before.
    pub other_source: bool,
    /// The Module is suspended.
    pub suspended: bool,
    /// The parameters are others than those that the active revision has; of no meaning if none serves.
    pub other_parameters: bool,
    /// How a new version comes to serve.
    pub rollout: Rollout,
}

/// What the machine needs to know of a loaded component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Name and version, as it describes itself: `podroute 0.1.0`.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
    /// Whether the Module's parameters fit it.
    pub fits: Result<(), Verdict>,
}
