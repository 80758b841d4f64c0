//! What happens to a module.

use super::Rejection;
use crate::rollout::{Preview, Rollout};
use crate::source::Digest;

/// What happens to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What the Module says of the time before the host started; at most once, before anything
    /// else.
    StatusLoaded {
        /// What served last.
        revision: Option<Digest>,
        /// What served before that.
        previous: Option<Digest>,
        /// What was rejected for good.
        rejected: Vec<(Digest, Rejection)>,
    },
    /// A person's word on versions: what the Module's annotations say now.
    Approval {
        /// This version may serve, whatever it would do.
        approve: Option<Digest>,
        /// This version must not serve.
        reject: Option<Digest>,
    },
    /// Which annotations name no digest, and what to do; `None` if all do.
    InvalidApproval(Option<String>),
    /// An [`Effect::RestoreSnapshot`] ended: the copy is there, or why not.
    SnapshotRestored {
        /// What was to be fetched.
        digest: Digest,
        /// How it ended.
        result: Result<(), Rejection>,
    },
    /// An [`Effect::Preview`] ended: what the candidate would do, or why that is not known.
    Previewed {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<Preview, Rejection>,
    },
    /// An [`Effect::Commit`] ended.
    Committed {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<(), Rejection>,
    },
    /// Since the swap more primaries fail than may; the verdict says how.
    FailureThresholdExceeded(Rejection),
    /// The time is over that an [`Effect::BeginRollbackWindow`] began.
    RollbackWindowOver(Digest),
    /// The Module appeared or its spec changed.
    Spec {
        /// `metadata.generation`.
        generation: i64,
        /// Whether the spec can be used.
        spec: Result<Spec, Rejection>,
    },
    /// An [`Effect::CheckParameters`] ended: whether the present parameters fit the active
    /// revision.
    ParametersChecked(Result<(), Rejection>),
    /// The source was read: the digest of its component, or why there is none.
    Source(Result<Digest, Rejection>),
    /// An [`Effect::Load`] ended.
    Loaded {
        /// What was loaded.
        digest: Digest,
        /// What it is, or why it is refused.
        result: Result<ComponentInfo, Rejection>,
    },
    /// An [`Effect::InstallCrds`] ended: all are established, or why not.
    Crds {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<(), Rejection>,
    },
    /// The wait of an [`Effect::RetryLater`] is over.
    Retry,
    /// How the module's runs go, when that changes.
    Health(Result<(), Rejection>),
    /// The Module is being deleted, and waits for its finalizers.
    Deleting,
    /// An [`Effect::Teardown`] ended: what was done, for people, or why not.
    TornDown(Result<String, Rejection>),
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
    /// The parameters are others than those that the active revision has; of no meaning if none
    /// serves.
    pub other_parameters: bool,
    /// How a new version comes to serve.
    pub rollout: Rollout,
}

/// What the machine needs to know of a loaded component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentInfo {
    /// Name and version, as it describes itself: `podroute 0.1.0`.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
    /// Whether the Module's parameters fit it.
    pub fits: Result<(), Rejection>,
}
