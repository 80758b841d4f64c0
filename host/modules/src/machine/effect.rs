//! What is to be done for a module.

use innkeeper_contract::Event as Notice;

use crate::source::Digest;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read the source, and answer with [`Event::Source`].
    Fetch,
    /// Compile and check the component of this digest aside; answer with [`Event::Loaded`].
    Load(Digest),
    /// Fetch the host's copy of this component; answer with [`Event::SnapshotRestored`].
    RestoreSnapshot(Digest),
    /// Run the loaded component without writing; answer with [`Event::Previewed`].
    Preview(Digest),
    /// Keep a copy of the component, and write into the Module's status that it serves; answer
    /// with [`Event::Committed`].
    Commit(Digest),
    /// Keep a copy of the component, if there is none yet; nothing hangs on it.
    SaveSnapshot(Digest),
    /// The version before serves again, as it did.
    Rollback,
    /// From now on count which primaries fail that did not fail before; answer with
    /// [`Event::FailureThresholdExceeded`] at once if they are too many, and with
    /// [`Event::RollbackWindowOver`] after the time of the spec's rollout.
    BeginRollbackWindow(Digest),
    /// The version before is needed no more.
    EndRollbackWindow,
    /// Install the CustomResourceDefinitions of the loaded component; answer with [`Event::Crds`].
    InstallCrds(Digest),
    /// From now on the loaded component serves, with the present settings; run every primary.
    Swap(Digest),
    /// The serving component goes on with the present settings.
    ApplySettings {
        /// Also with the present parameters; else with those that it has, since the present
        /// ones do not fit it.
        parameters: bool,
    },
    /// Check the present parameters against the schema of the active revision; answer with
    /// [`Event::ParametersChecked`].
    CheckParameters,
    /// Take the module's finalizer off its primaries, those that are being deleted having been
    /// asked what is left to do; answer with [`Event::TornDown`].
    Teardown,
    /// Take the host's finalizer off the Module.
    RemoveFinalizer,
    /// Send [`Event::Retry`] after a while, with backoff.
    RetryLater,
    /// Status or conditions changed: write them.
    Report,
    /// Write this Event about the Module.
    Notify(Notice),
    /// Nothing of this module runs any more.
    Stop,
}
