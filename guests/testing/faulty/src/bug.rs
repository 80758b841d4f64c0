//! The bugs.

use serde::Deserialize;

/// A bug that the guest can have. `docs/known-bugs.md` names the published bugs of each shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bug {
    /// None.
    #[default]
    None,

    // No usable answer.
    /// Traps if the image is left out.
    TrapOnEmptyImage,
    /// Traps if there are no pages.
    TakesFirstPage,
    /// Traps if the image has no tag.
    ParsesImage,
    /// Traps if the fourth byte of the image is within a character.
    SlicesImage,
    /// Allocates more memory than there is if there are many replicas.
    AllocatesByReplicas,
    /// Runs for ever if there are no replicas.
    LoopOnZeroReplicas,
    /// Divides by the number of replicas.
    DivideByReplicas,
    /// Desires a name that Kubernetes does not allow, made from a setting.
    NameFromSetting,
    /// Desires a label that Kubernetes does not allow, made from the image.
    LabelFromImage,
    /// Desires one replica less, also than none.
    OneReplicaLess,
    /// Desires the same page twice if the list names it twice.
    DuplicatePages,
    /// Desires an object in a namespace that a setting names.
    ForeignNamespace,
    /// Desires an object of a kind that the manifest does not declare.
    UndeclaredKind,

    // Endless writes.
    /// Writes the time into the ConfigMap.
    TimeInData,
    /// Writes the time into the status.
    TimeInStatus,
    /// Makes the status longer in each run.
    AppendsToStatus,
    /// Changes the message of a condition in each run.
    FlapsCondition,
    /// Counts its runs in the ConfigMap.
    CountRuns,
    /// Desires the Deployment only while it is not ready.
    FlapWhenReady,
    /// Changes between two values of a setting.
    Alternate,
    /// Makes the Job again because the Job has another uid.
    RecreatesJob,
    /// Writes the status many times after a write failed.
    StormsAfterFailure,

    // Results by chance.
    /// Names an object by a part of the primary's uid.
    PartOfUid,
    /// Writes the primary's uid into an object.
    WholeUid,
    /// Lists settings in an order that depends on chance.
    UnorderedList,

    // Earlier specs.
    /// Never takes Pods away.
    NeverScalesDown,
    /// Keeps settings that were removed.
    KeepsSettings,
    /// Keeps the first image.
    KeepsFirstImage,
    /// Does not delete the ConfigMaps of pages that were removed.
    KeepsPages,
    /// Reports the replicas of the first run.
    StatusOnce,
    /// Writes how often the spec has changed.
    GenerationInData,
    /// Keeps the first size of the database, and does not report it.
    KeepsSizeSilently,
    /// Stays paused once it was paused.
    StaysPaused,
    /// Ignores changes of the spec until the Deployment is ready.
    WaitsUntilReady,
    /// Ignores all specs after one that it does not like.
    RefusesAfterBadSpec,

    // Fields that cannot be changed.
    /// Selects Pods by their image.
    SelectorFollowsImage,
    /// The same, and reports that all is well.
    HidesRefusal,
    /// Makes the database again to change its size.
    RecreatesDatabase,
    /// Makes the claim again to change its class.
    RecreatesFiles,
    /// Deletes the claim while the Deployment is not ready.
    DropsFilesWhileUnready,

    // Faults.
    /// Makes the settings only in the run that makes the pages.
    SettingsOnlyAtFirst,
    /// Names the settings by the time of the first run, and records the name in the status.
    NameByTime,
    /// Remembers in the status that it was set up, and never makes the ConfigMap again.
    SetsUpOnce,
    /// Reports a failure for ever.
    FailureSticks,
    /// Counts Pods that are gone, although they are only not seen yet.
    CountsLostPods,
    /// Deletes the claim of a Pod that is not seen yet.
    DeletesClaimOfLostPod,

    // Other clients and primaries.
    /// Takes over the replicas that the Deployment has.
    AdoptsDrift,
    /// Does not desire the Service if it exists.
    ForgetsWhatExists,
    /// Makes the ConfigMap once, and never changes it.
    CreatesOnly,
    /// Repairs the ConfigMap only if the hash of its content is another one.
    ComparesHash,
    /// Does nothing until the spec changes.
    SkipsKnownGeneration,
    /// Copies the annotations of the Namespace, which it does not report as read.
    NamesTooFewFields,
    /// Names the ConfigMap of each Shop alike.
    SharedSettings,
    /// Gives an object to the last Shop.
    HandsOver,
    /// Counts the objects of all Shops.
    CountsOthers,
    /// Merges its settings into a ConfigMap of somebody else.
    MergesIntoForeign,
    /// Reports that all is well, whatever is there.
    AlwaysReady,

    // The end.
    /// Is never finalized.
    NeverFinalized,
    /// Is finalized only if the Deployment was ready.
    FinalizedIfReady,
    /// Is finalized only if it was set up.
    FinalizedIfInitialized,
    /// Is finalized only if the Secret is there.
    FinalizedIfSecret,
    /// Is finalized only if all objects could be applied.
    FinalizedIfApplied,

    // Secrets.
    /// Copies the password into the ConfigMap.
    PasswordInSettings,
    /// Copies the password into the environment of the container.
    PasswordInEnvironment,
    /// Copies the password into the status.
    PasswordInStatus,
    /// Copies the password into the message of a condition.
    PasswordInCondition,
    /// Copies the password into an Event.
    PasswordInEvent,

    // Versions.
    /// Has the image of the version before.
    OldImage,
    /// Selects Pods by another label than the version before.
    NewSelector,
    /// Makes a new object only for Shops that the version before did not set up.
    SkipsInitialized,

    // Rare combinations of six properties of the spec.
    /// Traps if a stuck and paused Shop with at least 3 replicas, files and a database of 2 GiB
    /// migrates its data.
    TrapOnRareShop,
    /// Desires a label that Kubernetes does not allow for a stuck and paused Shop with at least 3
    /// replicas, files, a database of 1 GiB and several pages.
    LabelOfRareShop,
    /// Writes the primary's uid into the Job of a paused Shop with at least 3 replicas, a password,
    /// files and a database.
    UidInRareJob,
    /// Counts its runs in the ConfigMap of a stuck and paused Shop with at least 3 replicas, a
    /// password, files and a database.
    CountRunsOfRareShop,
}
