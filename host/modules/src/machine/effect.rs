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
    /// Fetch the snapshot of a component; the answer is `Event::SnapshotRestored`.
    RestoreSnapshot(Digest),
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
    /// The previous revision is not needed any more.
    EndRollbackWindow,
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
    /// Send `Event::ReinstallCrds` after a backoff.
    ReinstallLater,
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
    /// Remove the host's finalizer from the Module.
    RemoveFinalizer,
    /// Send `Event::Retry` after a backoff.
    RetryLater,
    /// Status or conditions changed: write them.
    Report,
    /// Write this Event about the Module.
    Notify(Notice),
    /// Nothing of this module runs any more.
    RemoveModule,
}

impl Effect {
    /// Writes an Event about the Module.
    pub(super) fn notify(type_: EventType, reason: &str, message: String) -> Self {
        Self::Notify(Notice { type_, reason: reason.to_owned(), message })
    }

    /// Writes a warning about the Module.
    pub(super) fn warning(rejection: &Rejection) -> Self {
        Self::notify(EventType::Warning, &rejection.reason, rejection.message.clone())
    }
}
