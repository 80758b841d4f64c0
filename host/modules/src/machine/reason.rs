//! Reasons of conditions and events that are the machine's own.

/// The source has not been read yet.
pub const WAITING: &str = "Waiting";
/// The source does not exist, or lacks a part.
pub const SOURCE_NOT_FOUND: &str = "SourceNotFound";
/// The present source is loaded.
pub const SOURCE_LOADED: &str = "SourceLoaded";
/// The candidate is compiled and asked to describe itself.
pub const LOADING: &str = "Loading";
/// The candidate's CustomResourceDefinitions are installed.
pub const INSTALLING_CRDS: &str = "InstallingCRDs";
/// A revision is active.
pub const REVISION_ACTIVE: &str = "RevisionActive";
/// No revision is active.
pub const NO_ACTIVE_REVISION: &str = "NoActiveRevision";
/// The Module has `spec.paused`.
pub const PAUSED: &str = "Paused";
/// The spec cannot be used.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// Another module reconciles some of the same primaries.
pub const PRIMARY_OVERLAP: &str = "PrimaryOverlap";
/// The guest has a policy, and the Module has no `spec.policy`.
pub const POLICY_NOT_GRANTED: &str = "PolicyNotGranted";
/// The Module has `spec.policy`, and the guest has no policy.
pub const POLICY_MISSING: &str = "PolicyMissing";
/// `spec.policy` does not fit the policy of the guest.
pub const INVALID_POLICY_SETTINGS: &str = "InvalidPolicySettings";
/// The Module has `spec.policy`, and the host has rights in some namespaces only.
pub const POLICIES_NEED_CLUSTER_SCOPE: &str = "PoliciesNeedClusterScope";
/// The parameters do not fit the guest.
pub const INVALID_PARAMETERS: &str = "InvalidParameters";
/// The guest's schema of the parameters cannot be used, or takes too much.
pub const INVALID_PARAMETERS_SCHEMA: &str = "InvalidParametersSchema";
/// A parameter that names a kind has another shape, or the guest cannot use the kind.
pub const INVALID_KIND_PARAMETER: &str = "InvalidKindParameter";
/// The API server does not serve a kind that a parameter names.
pub const KIND_NOT_SERVED: &str = "KindNotServed";
/// The API server serves several resources of a kind that a parameter names.
pub const KIND_AMBIGUOUS: &str = "KindAmbiguous";
/// The parameters name another primary kind than that of the active revision.
pub const PRIMARY_KIND_CHANGED: &str = "PrimaryKindChanged";
/// The host could not check the parameters.
pub const PARAMETERS_NOT_CHECKED: &str = "ParametersNotChecked";
/// The parameters are being checked against the schema of the active revision.
pub const CHECKING_PARAMETERS: &str = "CheckingParameters";
/// The runs succeed.
pub const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
/// The runs succeed, and the API server refuses writes because of data of single primaries.
pub const SOME_WRITES_REFUSED: &str = "SomeWritesRefused";
/// The ServiceAccount lacks a right to write.
pub const FORBIDDEN: &str = "Forbidden";
/// No run has ended yet.
pub const NOT_RECONCILED: &str = "NotReconciled";
/// The candidate runs without writes.
pub const PREVIEWING: &str = "Previewing";
/// The host writes the decision for the candidate.
pub const COMMITTING: &str = "Committing";
/// The host fetches the snapshot of the revision that was active before it started.
pub const RESTORING_SNAPSHOT: &str = "RestoringSnapshot";
/// The candidate needs an approval.
pub const HELD: &str = "Held";
/// No candidate needs an approval.
pub const NO_APPROVAL_NEEDED: &str = "NoApprovalNeeded";
/// A user has rejected the component.
pub const REJECTED: &str = "Rejected";
/// The previous revision is active again, since too many primaries failed.
pub const ROLLED_BACK: &str = "RolledBack";
/// A definition of the candidate would accept less than the installed one.
pub const CRD_NOT_ADDITIVE: &str = "CRDIncompatible";
/// No definition of a candidate would accept less than the installed one.
pub const CRDS_COMPATIBLE: &str = "CRDsCompatible";
/// A foreign definition would become one that accepts less.
pub const WOULD_NARROW_CRD: &str = "WouldNarrowCRD";
/// A foreign definition would become one that prunes fields of stored objects.
pub const WOULD_LOSE_DATA: &str = "WouldLoseData";
/// A foreign definition is the module's now.
pub const CRD_ADOPTED: &str = "CRDAdopted";
/// A foreign definition becomes the module's.
pub const ADOPTING_CRDS: &str = "AdoptingCRDs";
/// Somebody deleted a definition of the active revision.
pub const CRD_DELETED: &str = "CRDDeleted";
/// The host has installed a definition of the active revision again.
pub const CRD_REINSTALLED: &str = "CRDReinstalled";
/// The Module is being deleted.
pub const FINALIZING: &str = "Finalizing";
