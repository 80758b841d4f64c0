//! What happens to a module.

use super::rejection::Rejection;
use super::run_failure::RunFailure;
use crate::crd_refusal::{CrdRefusal, HeldCrds};
use crate::installed_crds::InstalledCrds;
use crate::rollout::{Preview, Rollout};
use crate::source::Digest;

/// What happens to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The status that the Module had when the host started; at most once, before anything else.
    StatusLoaded {
        /// The active revision.
        revision: Option<Digest>,
        /// Whether a host found before that the active revision is lost.
        is_lost: bool,
        /// The revisions that were active before, the last one first.
        history: Vec<Digest>,
        /// The components that only an approval allows again.
        rejected: Vec<(Digest, Rejection)>,
        /// The approval by which a component became active.
        used_approval: Option<Digest>,
        /// The rejection that the host took last.
        used_rejection: Option<Digest>,
    },
    /// The approval and the rejection in the Module's annotations.
    Approval {
        /// The component that may become active, whatever it would do.
        approve: Option<Digest>,
        /// The component that must not become active.
        reject: Option<Digest>,
    },
    /// Which annotations name no digest, and what to do; `None` if all do.
    InvalidApproval(Option<String>),
    /// A `DirectEffect::RestoreSnapshot` ended: the snapshot is fetched, or why not.
    SnapshotRestored {
        /// The component.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// An `Effect::Preview` ended: what the candidate would do, or why that is not known.
    Previewed {
        /// The component.
        digest: Digest,
        /// The result.
        result: Result<Preview, Rejection>,
    },
    /// An `Effect::Commit` ended.
    Committed {
        /// The component.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// Since the swap more primaries fail than allowed.
    FailureThresholdExceeded {
        /// The active revision of the `Effect::BeginRollbackWindow`.
        digest: Digest,
        /// How they fail.
        rejection: Rejection,
    },
    /// An `Effect::CommitRollback` ended.
    RollbackCommitted {
        /// The revision to return to.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// The rollback window of an `Effect::BeginRollbackWindow` is over.
    RollbackWindowOver(Digest),
    /// The Module appeared or its spec changed.
    Spec {
        /// `metadata.generation`.
        generation: i64,
        /// Whether the spec can be used.
        spec: Result<Spec, Rejection>,
    },
    /// An `Effect::CheckParameters` ended: whether the present parameters fit the active
    /// revision.
    ParametersChecked(Result<(), Rejection>),
    /// The API server serves a kind that the parameters name otherwise than the active revision
    /// uses it.
    KindsChanged,
    /// The source was read: the digest of its component, or why there is none.
    Source(Result<Digest, Rejection>),
    /// An `Effect::Load` ended.
    Loaded {
        /// The component.
        digest: Digest,
        /// What it is, or why it is refused.
        result: Result<ComponentInfo, Rejection>,
    },
    /// An `Effect::InstallCrds` ended: all are established, or why not.
    Crds {
        /// The component.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// An `Effect::InstallCrds` ended: it would change foreign definitions, and takes
    /// something away.
    CrdsHeld {
        /// The component.
        digest: Digest,
        /// What it would change.
        held: Box<HeldCrds>,
    },
    /// An `Effect::AdoptCrds` ended: the definitions are the module's, or why not.
    CrdsAdopted {
        /// The active revision.
        digest: Digest,
        /// The result.
        result: Result<(), CrdRefusal>,
    },
    /// An installation wrote these definitions. The event of its result follows, unless it has none
    /// any more: it failed, or is superseded.
    CrdsWritten(InstalledCrds),
    /// These CustomResourceDefinitions of the active revision do not exist any more.
    CrdsDeleted(Vec<String>),
    /// A CustomResourceDefinition of the active revision may have another spec.
    CrdChanged,
    /// A CustomResourceDefinition of the active revision exists.
    CrdFound(String),
    /// The wait of a `DirectEffect::ReinstallLater` is over.
    ReinstallCrds,
    /// An `Effect::ReinstallCrds` ended: all are established, or why not.
    CrdsReinstalled {
        /// The active revision whose definitions they are.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// The wait of a `DirectEffect::RetryLater` is over.
    Retry,
    /// Whether the module's runs succeed, when that changes; if they do, a note about single
    /// primaries with refused writes.
    Health(Result<Option<String>, RunFailure>),
    /// The Module is being deleted, and waits for its finalizers.
    Deleting,
    /// An `Effect::Teardown` ended: what was done, for users, or why not.
    TornDown(Result<String, Rejection>),
    /// The Module does not exist any more.
    Deleted,
}

/// A valid spec, as far as the machine is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Spec {
    /// The source is another one than before.
    pub other_source: bool,
    /// The Module is paused.
    pub paused: bool,
    /// The parameters differ from those of the active revision, if there is one.
    pub other_parameters: bool,
    /// Foreign definitions become those of the module.
    pub adopts_crds: bool,
    /// How a candidate becomes active.
    pub rollout: Rollout,
}

/// A loaded component, as far as the machine is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentInfo {
    /// Name and version, as it describes itself: `podroute 0.1.0`.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
    /// Whether it has a policy that the Module lets deny requests (mode Enforce, anywhere).
    pub enforces: bool,
    /// Whether the Module's parameters fit it.
    pub fits: Result<(), Rejection>,
}
