//! What the machine asks the driver to do for a module.

use innkeeper_contract::{Event as Notice, EventType};

use super::rejection::Rejection;
use crate::source::Digest;

/// What the driver does for a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read the source; the answer is `Event::Source`.
    Fetch,
    /// Compile and check a component; the answer is `Event::Loaded`.
    Load(Digest),
    /// Run the loaded component without writes; the answer is `Event::Previewed`.
    Preview(Digest),
    /// Save a snapshot of the component, and write into the Module's status that it is the active
    /// revision; the answer is `Event::Committed`.
    Commit(Digest),
    /// Save a snapshot of the component, if there is none yet; nothing waits for it.
    SaveSnapshot(Digest),
    /// Write into the Module's status that the previous revision, this one, is active again; the
    /// answer is `Event::RollbackCommitted`.
    CommitRollback(Digest),
    /// The previous revision, this one, is active again.
    Rollback(Digest),
    /// Count primaries that did not fail before from now on; the answer is
    /// `Event::FailureThresholdExceeded` at once if they are too many, and
    /// `Event::RollbackWindowOver` after the time of the spec's rollout.
    BeginRollbackWindow(Digest),
    /// Install the CustomResourceDefinitions of the loaded component; the answer is
    /// `Event::Crds`.
    InstallCrds(Digest),
    /// Install the CustomResourceDefinitions of the active revision over foreign ones; the answer
    /// is `Event::CrdsAdopted`.
    AdoptCrds(Digest),
    /// Install these CustomResourceDefinitions of the active revision, which somebody deleted; the
    /// answer is `Event::CrdsReinstalled`.
    ReinstallCrds {
        /// The active revision.
        digest: Digest,
        /// The names of the definitions.
        names: Vec<String>,
    },
    /// The loaded component is the active revision, with the present settings: run every primary.
    Swap(Digest),
    /// The active revision gets the present settings.
    ApplySettings {
        /// It gets the present parameters too; otherwise it keeps its own, since the present ones
        /// do not fit it.
        parameters: bool,
    },
    /// Check the present parameters against the schema of the active revision; the answer is
    /// `Event::ParametersChecked`.
    CheckParameters,
    /// Remove the module's finalizer from its primaries; the guest finishes those first that are
    /// being deleted. The answer is `Event::TornDown`.
    Teardown,
    /// Status or conditions changed: write them.
    Report,
    /// An effect to which the driver adds nothing.
    Direct(DirectEffect),
}

/// An effect that the driver hands to the host as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectEffect {
    /// Fetch the snapshot of this component; the answer is `Input::Snapshot`, and so
    /// `Event::SnapshotRestored`.
    RestoreSnapshot(Digest),
    /// Stop to count failures: the previous revision is not needed any more.
    EndRollbackWindow,
    /// Hand in `Event::ReinstallCrds` after a backoff that grows from deletion to deletion.
    ReinstallLater,
    /// Remove the host's finalizer from the Module.
    RemoveFinalizer,
    /// Hand in `Event::Retry` after a backoff.
    RetryLater,
    /// Write this Event about the Module.
    Notify(Notice),
    /// The Module does not exist any more: stop everything of the module.
    RemoveModule,
}

impl From<DirectEffect> for Effect {
    fn from(effect: DirectEffect) -> Self {
        Self::Direct(effect)
    }
}

impl Effect {
    /// Writes an Event about the Module.
    pub(super) fn notify(type_: EventType, reason: &str, message: String) -> Self {
        Self::Direct(DirectEffect::Notify(Notice { type_, reason: reason.to_owned(), message }))
    }

    /// Writes a warning about the Module.
    pub(super) fn warning(rejection: &Rejection) -> Self {
        Self::notify(EventType::Warning, &rejection.reason, rejection.message.clone())
    }
}
