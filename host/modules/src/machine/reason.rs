//! Reasons of conditions and events that are the machine's own.

/// The source has not been read yet.
pub const WAITING: &str = "Waiting";
/// The present source is loaded.
pub const SOURCE_LOADED: &str = "SourceLoaded";
/// The candidate is compiled and asked to describe itself.
pub const LOADING: &str = "Loading";
/// The candidate's CustomResourceDefinitions are installed.
pub const INSTALLING_CRDS: &str = "InstallingCRDs";
/// The present source serves.
pub const SERVING: &str = "RevisionActive";
/// Nothing has been loaded that could serve.
pub const NOTHING_LOADED: &str = "NoActiveRevision";
/// The Module says `paused`.
pub const SUSPENDED: &str = "Paused";
/// The spec cannot be used.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// The parameters do not fit the guest.
pub const INVALID_PARAMETERS: &str = "InvalidParameters";
/// The guest's schema of the parameters cannot be used, or takes too much.
pub const INVALID_PARAMETERS_SCHEMA: &str = "InvalidParametersSchema";
/// The host could not check the parameters.
pub const PARAMETERS_NOT_CHECKED: &str = "ParametersNotChecked";
/// The parameters are being checked against the schema of the active revision.
pub const CHECKING_PARAMETERS: &str = "CheckingParameters";
/// The runs do not fail.
pub const RUNS_SUCCEED: &str = "ReconcileSucceeded";
/// Nothing has run yet.
pub const NO_RUNS: &str = "NotReconciled";
/// The candidate is run without writing.
pub const REHEARSING: &str = "Previewing";
/// The decision for the candidate is written down.
pub const COMMITTING: &str = "Committing";
/// What served last is fetched from its copy.
pub const RECALLING: &str = "RestoringSnapshot";
/// The candidate needs an approval.
pub const HELD: &str = "Held";
/// No candidate needs an approval.
pub const NOTHING_HELD: &str = "NoApprovalNeeded";
/// A person has rejected the version.
pub const REJECTED: &str = "Rejected";
/// The version before serves again, since too much failed.
pub const ROLLED_BACK: &str = "RolledBack";
/// A definition of the candidate would take less than the installed one.
pub const CRD_NOT_ADDITIVE: &str = "CRDIncompatible";
/// No definition of a candidate would take less than the installed one.
pub const CRDS_COMPATIBLE: &str = "CRDsCompatible";
/// The Module is being deleted.
pub const LEAVING: &str = "Finalizing";
