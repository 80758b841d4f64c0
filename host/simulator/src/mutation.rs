//! Mistakes that can be switched on, to see whether the differential test finds them.
//!
//! All are off, and cost one comparison, unless a test plants one in its thread.

use std::cell::Cell;

/// A mistake that somebody could have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Bug {
    UpdateLeavesOwners,
    RemovalLeavesOwners,
    NoCapOfManagers,
    StatusIsOwned,
    ApplyNeverRemoves,
    UpdatersDoNotKeep,
    NoOpBumpsVersion,
    GenerationNeverGrows,
    MetadataGrowsGeneration,
    StatusWritesSpec,
    StatusIsWrittenWithSpec,
    UidIsNotChecked,
    VersionIsNotChecked,
    FinalizersAreIgnored,
    DryRunWrites,
    NoPruning,
    NoDefaulting,
    MergePatchKeepsNull,
    LabelsAreNotSelected,
    ForceIsIgnored,
    ForceIsAssumed,
    CreateReplaces,
    ApplyOverAnotherUid,
    DeleteIgnoresPreconditions,
    ContinueStartsAgain,
    EnumIsNotChecked,
    RequiredIsNotChecked,
    DeletionGrowsNoGeneration,
    ManagedFieldsCanBeForged,
    GenerateNameIsKept,
    CollectionIsDeletedWhole,
    OrderIsIgnored,
    MoveLeavesWhatItMoved,
    InitialEventsDoNotEnd,
    WatchTellsOfItsBeginning,
    FieldsAreNotSelected,
    WarningsAreKept,
}

/// All of them.
#[doc(hidden)]
pub const BUGS: [Bug; 37] = [
    Bug::UpdateLeavesOwners,
    Bug::RemovalLeavesOwners,
    Bug::NoCapOfManagers,
    Bug::StatusIsOwned,
    Bug::ApplyNeverRemoves,
    Bug::UpdatersDoNotKeep,
    Bug::NoOpBumpsVersion,
    Bug::GenerationNeverGrows,
    Bug::MetadataGrowsGeneration,
    Bug::StatusWritesSpec,
    Bug::StatusIsWrittenWithSpec,
    Bug::UidIsNotChecked,
    Bug::VersionIsNotChecked,
    Bug::FinalizersAreIgnored,
    Bug::DryRunWrites,
    Bug::NoPruning,
    Bug::NoDefaulting,
    Bug::MergePatchKeepsNull,
    Bug::LabelsAreNotSelected,
    Bug::ForceIsIgnored,
    Bug::ForceIsAssumed,
    Bug::CreateReplaces,
    Bug::ApplyOverAnotherUid,
    Bug::DeleteIgnoresPreconditions,
    Bug::ContinueStartsAgain,
    Bug::EnumIsNotChecked,
    Bug::RequiredIsNotChecked,
    Bug::DeletionGrowsNoGeneration,
    Bug::ManagedFieldsCanBeForged,
    Bug::GenerateNameIsKept,
    Bug::CollectionIsDeletedWhole,
    Bug::OrderIsIgnored,
    Bug::MoveLeavesWhatItMoved,
    Bug::InitialEventsDoNotEnd,
    Bug::WatchTellsOfItsBeginning,
    Bug::FieldsAreNotSelected,
    Bug::WarningsAreKept,
];

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a mistake in this thread, or takes it out.
#[doc(hidden)]
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

pub(crate) fn planted(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}
