//! The bugs.

use serde::Deserialize;

/// A bug that the guest can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bug {
    /// None.
    #[default]
    None,
    /// Traps if the image is left out.
    TrapOnEmptyImage,
    /// Runs for ever if there are no replicas.
    LoopOnZeroReplicas,
    /// Desires a name that Kubernetes does not allow, made from a setting.
    NameFromSetting,
    /// Desires the same page twice if the list names it twice.
    DuplicatePages,
    /// Desires an object in a namespace that a setting names.
    ForeignNamespace,
    /// Divides by the number of replicas.
    DivideByReplicas,
    /// Writes the time into the ConfigMap.
    TimeInData,
    /// Counts its runs in the ConfigMap.
    CountRuns,
    /// Desires the Deployment only while it is not ready.
    FlapWhenReady,
    /// Changes between two values of a setting.
    Alternate,
    /// Names an object by a part of the primary's uid.
    PartOfUid,
    /// Never takes Pods away.
    NeverScalesDown,
    /// Stays paused once it was paused.
    StaysPaused,
    /// Keeps settings that were removed.
    KeepsSettings,
    /// Keeps the first image.
    KeepsFirstImage,
    /// Does not delete the ConfigMaps of pages that were removed.
    KeepsPages,
    /// Remembers in the status that it was set up, and never makes the ConfigMap again.
    SetsUpOnce,
    /// Takes over the replicas that the Deployment has.
    AdoptsDrift,
    /// Does not desire the Service if it exists.
    ForgetsWhatExists,
    /// Reports the replicas of the first run.
    StatusOnce,
    /// Is never finalized.
    NeverFinalized,
    /// Is finalized only if the Deployment was ready.
    FinalizedIfReady,
    /// Is finalized only if it was set up.
    FinalizedIfInitialized,
}
