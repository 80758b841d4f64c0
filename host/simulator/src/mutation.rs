//! Mutations for mutation testing: mistakes that a test activates, to see whether the differential
//! test finds them.
//!
//! All are off, and cost one comparison each, unless a test activates one in its thread.

use std::cell::Cell;

/// A mistake that an implementation could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Mutation {
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

/// All mutations.
#[doc(hidden)]
pub const MUTATIONS: [Mutation; 37] = [
    Mutation::UpdateLeavesOwners,
    Mutation::RemovalLeavesOwners,
    Mutation::NoCapOfManagers,
    Mutation::StatusIsOwned,
    Mutation::ApplyNeverRemoves,
    Mutation::UpdatersDoNotKeep,
    Mutation::NoOpBumpsVersion,
    Mutation::GenerationNeverGrows,
    Mutation::MetadataGrowsGeneration,
    Mutation::StatusWritesSpec,
    Mutation::StatusIsWrittenWithSpec,
    Mutation::UidIsNotChecked,
    Mutation::VersionIsNotChecked,
    Mutation::FinalizersAreIgnored,
    Mutation::DryRunWrites,
    Mutation::NoPruning,
    Mutation::NoDefaulting,
    Mutation::MergePatchKeepsNull,
    Mutation::LabelsAreNotSelected,
    Mutation::ForceIsIgnored,
    Mutation::ForceIsAssumed,
    Mutation::CreateReplaces,
    Mutation::ApplyOverAnotherUid,
    Mutation::DeleteIgnoresPreconditions,
    Mutation::ContinueStartsAgain,
    Mutation::EnumIsNotChecked,
    Mutation::RequiredIsNotChecked,
    Mutation::DeletionGrowsNoGeneration,
    Mutation::ManagedFieldsCanBeForged,
    Mutation::GenerateNameIsKept,
    Mutation::CollectionIsDeletedWhole,
    Mutation::OrderIsIgnored,
    Mutation::MoveLeavesWhatItMoved,
    Mutation::InitialEventsDoNotEnd,
    Mutation::WatchTellsOfItsBeginning,
    Mutation::FieldsAreNotSelected,
    Mutation::WarningsAreKept,
];

thread_local! {
    static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
}

/// Activates a mutation in this thread, or none.
#[doc(hidden)]
pub fn activate_mutation(mutation: Option<Mutation>) {
    ACTIVE.with(|is_active| is_active.set(mutation));
}

/// Whether a mutation is active in this thread.
pub(crate) fn is_active(mutation: Mutation) -> bool {
    ACTIVE.with(|is_active| is_active.get() == Some(mutation))
}
