//! `status` of a Module. The doc comments are the descriptions in its CustomResourceDefinition.

use innkeeper_contract::{Kind, PrimarySelector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy_preview_status::PolicyPreviewStatus;
use super::policy_status::PolicyStatus;

/// The observed state of a module. Changes only when the module's state does: counters are
/// metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// SHA-256 of the active revision's component (of its bytes as wasm, not of the gzip), in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,

    /// The active revision's guest, as it describes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,

    /// The version of the contract (package innkeeper:guest) that the guest was built for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,

    /// The kind of the primaries that the module reconciles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<KindStatus>,

    /// The policy of the active revision, if its guest has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyStatus>,

    /// Whether the guest decorates the primaries, so that others may reconcile them as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,

    /// Which primaries the guest selects. The module reconciles those of them that spec.selector
    /// selects too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PrimarySelector>,

    /// The finalizer that the module writes on its primaries. When the Module is deleted, the host
    /// removes it from all of them first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,

    /// The revision that innkeeper modules rollback NAME activates again: the one that was active
    /// before the active revision, without rejected ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<EarlierRevision>,

    /// The last two revisions that were active before the active one, of which the host keeps
    /// snapshots; the last one first. They may be rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub history: Vec<EarlierRevision>,

    /// The changes that the preview of the active revision found, when it was the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<PreviewStatus>,

    /// The candidate revision: loading, held, about to become active, or rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateStatus>,

    /// Digest of a change of foreign CustomResourceDefinitions, while it waits for an approval
    /// (spec.crds: Adopt); the annotation innkeeper.dev/approve names it.
    #[serde(rename = "heldCRDChange", default, skip_serializing_if = "Option::is_none")]
    pub held_crd_change: Option<String>,

    /// Digest of the last approval (annotation innkeeper.dev/approve) by which a component became
    /// active. This approval does not count again; to renew it, remove the annotation first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_approval: Option<String>,

    /// Digest of the last rejection (annotation innkeeper.dev/reject) that the host has taken. This
    /// rejection does not count again, also after a restart of the host; to renew it, remove the
    /// annotation first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_rejection: Option<String>,

    /// The last 16 components that a user rejected or the host rolled back. The host does not try
    /// them again unless a user approves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub rejected: Vec<RejectedVersion>,

    /// The kinds of which the module may have created objects: those of the active revision, and
    /// those of earlier ones as long as such objects exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_kinds: Vec<KindStatus>,

    /// The state of the module as conditions. Loaded: the host has loaded the component of the
    /// source. Serving: a revision is active. Ready: the component of the source is active with the
    /// current spec and may write, and the Module is not paused. Healthy: the guest succeeds for
    /// all primaries, and the ServiceAccount may write what it desires. Held: a candidate requires
    /// an approval. Blocked: a definition or a stored object prevents the candidate. Authorized:
    /// the ServiceAccount allows the module, and has its rights. KindsAvailable: the API server
    /// serves the declared kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ModuleCondition>,
}

impl ModuleStatus {
    /// The revisions that were active before and of which the host keeps a snapshot, the last one
    /// first. An older host reports the previous revision only.
    pub fn earlier_revisions(&self) -> &[EarlierRevision] {
        if self.history.is_empty() { self.previous.as_slice() } else { &self.history }
    }
}

/// A revision that was active before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRevision {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The ConfigMap, in the namespace innkeeper-modules, with the snapshot under the key
    /// guest.wasm.
    pub config_map: String,
    /// The version of the guest, as it describes itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CandidateStatus {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Its state. Loading: the host fetches, compiles and checks the component. Previewing: the
    /// host runs it without writes. Held: it waits for an approval. InstallingCRDs: the host
    /// installs its definitions. Committing: the host saves the decision that it becomes active.
    /// Rejected: it does not become active. RestoringSnapshot: the host loads the snapshot of the
    /// revision that was active.
    pub state: String,
    /// The version of the guest, as it describes itself, once the component is loaded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The reason why it is held or rejected, one word in CamelCase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Message for people: why it is held or rejected, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// Primaries that existed at the preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primaries: Option<u32>,
    /// Primaries for which the preview ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previewed: Option<u32>,
    /// Objects that it would create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creates: Option<u32>,
    /// Objects that it would change, with those that it would recreate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<u32>,
    /// Objects that it would delete, with those that it would recreate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes: Option<u32>,
    /// Primaries for which it fails and the active revision does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// The most important objects, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub examples: Vec<ExampleStatus>,
    /// How its policy decides differently from the active one, if the guest has a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyPreviewStatus>,
}

/// The changes that a preview found, compared with the revision that was active then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewStatus {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Primaries that existed.
    pub primaries: u32,
    /// Primaries for which the preview ran it.
    pub previewed: u32,
    /// Objects to create.
    pub creates: u32,
    /// Objects to change, with those to recreate.
    pub changes: u32,
    /// Objects to delete, with those to recreate.
    pub deletes: u32,
    /// Primaries for which it failed and the active revision did not.
    pub failures: u32,
    /// The most important objects, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub examples: Vec<ExampleStatus>,
    /// How its policy decided differently from the one before, if the guest has a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyPreviewStatus>,
}

/// What a candidate would do with one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExampleStatus {
    /// Create, Change, Recreate, Delete or Fail.
    pub action: String,
    /// Kind, namespace and name of the object, as in `Deployment web/a`. For the action Fail: of
    /// the primary whose run fails.
    pub object: String,
    /// The fields that would change. For the action Fail: the reason of the failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// A component that the host does not try again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVersion {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Reason for programs, one CamelCase word.
    pub reason: String,
    /// Message for people: why it was rejected or rolled back.
    #[schemars(length(max = 4096))]
    pub message: String,
    /// The version of the guest, as it describes itself, if the component could be loaded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A guest, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestName {
    /// The name of the guest.
    pub name: String,
    /// The version of the guest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A kind, by group, version and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindName {
    /// Group and version.
    pub api_version: String,
    /// The kind's name.
    pub kind: String,
}

/// A kind, with what is needed to address its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindStatus {
    /// Group and version, as in objects: `apps/v1`, or `v1` for the core group.
    pub api_version: String,
    /// The kind's name.
    pub kind: String,
    /// The resource's name in URLs; empty if an older host wrote this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plural: String,
    /// Whether the objects have no namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster_scoped: bool,
}

impl KindStatus {
    /// Of a kind.
    pub fn of(kind: &Kind) -> Self {
        Self {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
            cluster_scoped: !kind.is_namespaced(),
        }
    }

    /// Its name.
    pub fn name(&self) -> KindName {
        KindName { api_version: self.api_version.clone(), kind: self.kind.clone() }
    }

    /// The kind; `None` if it is not known how its objects are addressed.
    pub fn known(&self) -> Option<Kind> {
        let make = if self.cluster_scoped { Kind::cluster } else { Kind::namespaced };
        (!self.plural.is_empty()).then(|| make(&self.api_version, &self.kind, &self.plural))
    }
}

/// A condition, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleCondition {
    /// The type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation of the spec that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time at which the status of the condition last changed.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// Reason for programs, one CamelCase word.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Message for people: the state, and what to do.
    #[schemars(length(max = 32768))]
    pub message: String,
}
