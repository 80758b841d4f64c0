//! The resource `Module` (`innkeeper.dev/v1alpha1`), as users write it.
//!
//! These types are the one source of `deploy/crds/modules.innkeeper.dev.yaml` (see
//! [`crd`](crate::crd())). A field is here only if it works: what a later version brings is
//! refused until then, so that nobody relies on a setting that does nothing.
//!
//! What users write as text (durations, quantities) is text here;
//! [`ValidatedSpec`](crate::ValidatedSpec) is what the host works with.

use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::renamed;

/// The group of our resources.
pub const GROUP: &str = innkeeper_core::host_objects::GROUP;

/// The version of [`Module`].
pub const VERSION: &str = "v1alpha1";

/// `apiVersion` of a [`Module`].
pub const API_VERSION: &str = "innkeeper.dev/v1alpha1";

/// `kind` of a [`Module`].
pub const KIND: &str = "Module";

/// The plural of [`Module`], as in URLs and RBAC.
pub const PLURAL: &str = "modules";

/// The kind of a [`Module`], as requests name it.
pub fn kind() -> Kind {
    Kind::cluster(API_VERSION, KIND, PLURAL)
}

/// The namespace of the modules' ServiceAccounts and source ConfigMaps.
pub const NAMESPACE: &str = innkeeper_core::host_objects::MODULES_NAMESPACE;

/// The key of the guest in its ConfigMap's `binaryData`, unless the Module names one.
pub const SOURCE_KEY: &str = "guest.wasm";

/// The annotation by which a person lets a version serve: all 64 hex digits of its digest.
pub const APPROVE_ANNOTATION: &str = "innkeeper.dev/approve";

/// The annotation by which a person refuses a version, in the same form.
pub const REJECT_ANNOTATION: &str = "innkeeper.dev/reject";

/// The finalizer on a Module whose guest has one on its primaries: the host takes those off
/// before the Module goes. A Module without it can be deleted also while no host runs.
pub const FINALIZER: &str = "innkeeper.dev/module";

/// Reconcile logic: a WebAssembly component, and how the host runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// `innkeeper.dev/v1alpha1`.
    pub api_version: String,
    /// `Module`.
    pub kind: String,
    /// Name, uid, generation and so on; the host reads those of [`Metadata`] only.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ModuleSpec,
    /// What is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ModuleStatus>,
}

/// Of `metadata`, what the host needs of a Module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The uid; empty in a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Counts changes of the spec; 0 in a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// The finalizers; the host's own is [`FINALIZER`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// When deletion was asked for, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Annotations; the host reads [`APPROVE_ANNOTATION`] and [`REJECT_ANNOTATION`] only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

/// What is wanted of a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own")]
pub struct ModuleSpec {
    /// Where the component comes from.
    pub source: Source,

    /// The ServiceAccount, in the namespace innkeeper-modules, as which everything of this
    /// module is done: what it may read and write is what this account may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// The API groups whose CustomResourceDefinitions the host may install when the guest
    /// describes them. Definitions of other groups are refused; one that the cluster
    /// already serves is used as it is. The guest's finalizer may be of these groups too.
    #[serde(rename = "allowedCRDGroups", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_crd_groups: Vec<String>,

    /// Handed to the guest at every run. Must fit the schema that the guest describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,

    /// Reconcile every primary again after this time even if nothing changed, for example
    /// 30s or 1h30m. The guest's own choice if left out; 0s for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub resync_period: Option<String>,

    /// Whether the host writes its conditions into the status of primaries. If not, only
    /// what the guest gives is written.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub manage_status: bool,

    /// What one run may use.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,

    /// Only primaries with these labels are reconciled; all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,

    /// Only primaries in these namespaces are reconciled; in all if left out or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,

    /// Whether the guest may make objects outside the namespace of their primary. It needs a
    /// finalizer then, since Kubernetes does not delete those with the primary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_cross_namespace: bool,

    /// Whether the guest may put finalizers on the objects that it makes. Such an object stays
    /// until somebody takes them off. A finalizer on the primary needs no permission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_finalizers: bool,

    /// Names of Secrets, in the namespace of a primary, whose bytes the guest may read; of all
    /// other Secrets it sees digests. The ServiceAccount needs the right to get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub secret_names: Vec<String>,

    /// The host writes nothing for this module. It still computes what it would write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// How a new version of the guest comes to serve.
    #[serde(default, skip_serializing_if = "Rollout::is_default")]
    pub rollout: Rollout,
}

/// How a new version of the guest comes to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// Immediate: as soon as it is checked. Guarded (if left out): it is run on the present
    /// primaries without writing first, and waits for a person if it would delete or fail more
    /// than the limits here allow. Manual: every version waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    /// So many objects may be deleted without a person's word; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_deletions: Option<u32>,

    /// So many percent of the objects that are there may be changed without a person's word; 100
    /// if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_changed_percent: Option<u32>,

    /// So many primaries may fail that did not fail before, without a person's word before the
    /// swap, and without going back to the version before after it; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_failures: Option<u32>,

    /// After a swap, the host rolls back to the previous revision if too many primaries fail within
    /// this time; 2m if left out, 0s for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub rollback_window: Option<String>,
}

impl Rollout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// When a new version serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// As soon as it is checked.
    Immediate,
    /// When it would do nothing that needs a person's word.
    Guarded,
    /// When a person has approved it.
    Manual,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_yes(value: &bool) -> bool {
    *value
}

/// Where a component comes from: exactly one of its members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// A ConfigMap in the namespace innkeeper-modules, with the component, plain or gzip, in
    /// its binaryData. If its annotation innkeeper.dev/chunks is 3, then the rest of it is in the
    /// ConfigMaps NAME-chunk-2 and NAME-chunk-3, under the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,

    /// A file, plain or gzip, relative to the file of the Module; for `innkeeper run --modules`
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub file: Option<String>,
}

/// A key of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigMapSource {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The key in binaryData. If left out: guest.wasm, or the only key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// What one run may use. What is left out is the host's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Linear memory, as a quantity: 64Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,

    /// Time, for example 500ms or 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub timeout: Option<String>,

    /// Time in which the component has to be compiled, for example 2m; 1m if left out. A guest that
    /// brings an interpreter may need more where processors are slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub compile_timeout: Option<String>,

    /// Size of what the guest gives back, as a quantity: 1Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<Quantity>,

    /// Size of what the guest logs, as a quantity: 16Ki. Lines beyond it are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<Quantity>,

    /// Number of objects that the guest may give back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_objects: Option<u32>,

    /// Number of reads (`cluster.get`, `cluster.list`) that the guest may make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_reads: Option<u32>,

    /// Size of what the host keeps of the reads of all primaries, to know which change concerns
    /// which of them, as a quantity; 64Mi if left out. Beyond it a primary that reads much is run
    /// again on each change of the kinds that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_reads: Option<Quantity>,

    /// Writes that the module may make in a second, in the long run; 200 if left out. After a pause
    /// twenty times as many may be made at once for one namespace, thirty times for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub writes_per_second: Option<u32>,

    /// Number of elements in the component's tables, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub table_elements: Option<u32>,
}

impl Limits {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A number of bytes: a whole number, or one with a suffix (`k`, `M`, `G`, `Ki`, `Mi`, `Gi`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// Bytes.
    Number(u64),
    /// Text.
    Text(String),
}

/// Labels that an object must have: both members must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,

    /// How its value and `values` are related.
    pub operator: LabelOperator,

    /// For `In` and `NotIn`, at least one; for `Exists` and `DoesNotExist`, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// How a label's value and the values of a requirement are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LabelOperator {
    /// One of the values.
    In,
    /// None of the values, or no such label.
    NotIn,
    /// Any value.
    Exists,
    /// No such label.
    DoesNotExist,
}

/// What is with a module. Changes only when the module's state does: counters are metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// SHA-256 of the component that serves (of its bytes as wasm, not of the gzip), in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,

    /// The guest that serves, as it describes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,

    /// The version of the contract (package innkeeper:guest) that the guest was built for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,

    /// The kind of the primaries that the module reconciles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<KindStatus>,

    /// Whether the guest decorates the primaries, so that others may reconcile them as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,

    /// The finalizer that the module writes on its primaries. When the Module is deleted, the
    /// host takes it off all of them before the Module goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,

    /// The version that served before, whose copy the host keeps: to go back to it, make it the
    /// source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,

    /// What the preview of the active revision found that it would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<PreviewStatus>,

    /// The version that is on its way to serve, or may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateStatus>,

    /// Versions that are not tried again unless a person approves them, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub rejected: Vec<RejectedVersion>,

    /// The kinds that the module may have made objects of: those of the guest that serves, and of
    /// those before it as long as such objects are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned_kinds: Vec<KindStatus>,

    /// Loaded: the present source is loaded. Serving: some version is serving. Ready: the
    /// present source serves with the present spec. Healthy: its runs do not fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<ModuleCondition>,
}

/// The version that served before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The ConfigMap, in the namespace innkeeper-modules, with the host's copy.
    pub config_map: String,
}

/// A version on its way to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CandidateStatus {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Where it is: Loading, Previewing, Held, InstallingCRDs, Committing, Rejected,
    /// RestoringSnapshot.
    pub state: String,
    /// If it is held or refused, one CamelCase word why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// If it is held or refused, why and what to do, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// Primaries that existed at the preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primaries: Option<u32>,
    /// Primaries for which the preview ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previewed: Option<u32>,
    /// Objects that it would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creates: Option<u32>,
    /// Objects that it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<u32>,
    /// Objects that it would delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes: Option<u32>,
    /// Primaries for which it fails and what serves does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// The most telling objects, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub examples: Vec<ExampleStatus>,
}

/// What a version was found to do by running it without writing, against what served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewStatus {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Primaries that there were.
    pub primaries: u32,
    /// Primaries for which the preview ran it.
    pub previewed: u32,
    /// Objects to make.
    pub creates: u32,
    /// Objects to change.
    pub changes: u32,
    /// Objects to delete.
    pub deletes: u32,
    /// Primaries for which it failed and what served did not.
    pub failures: u32,
    /// The most telling objects, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub examples: Vec<ExampleStatus>,
}

/// What a candidate would do with one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExampleStatus {
    /// Create, Change, Recreate, Delete or Fail.
    pub action: String,
    /// The object: `Deployment web/a`; the primary, if it is its run that fails.
    pub object: String,
    /// The fields that would change; why it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// A version that is not tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVersion {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// One CamelCase word.
    pub reason: String,
    /// Why, for people.
    #[schemars(length(max = 4096))]
    pub message: String,
}

/// A guest, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestName {
    /// Its name.
    pub name: String,
    /// Its own version.
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
    /// Group and version.
    pub api_version: String,
    /// The kind's name.
    pub kind: String,
    /// The resource's name in URLs; empty if a host wrote this that did not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plural: String,
    /// The objects belong to the whole cluster.
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
    /// What it is about.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation of the spec that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When its status last changed.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// One CamelCase word, for machines.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// What is, and what to do, for people.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Why a document is not a Module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// It is another kind of resource.
    #[error(
        "expected apiVersion: {API_VERSION}, kind: {KIND}, found apiVersion: {api_version}, kind: {kind}"
    )]
    Kind {
        /// What it says, or `(none)`.
        api_version: String,
        /// What it says, or `(none)`.
        kind: String,
    },
    /// A field is missing, unknown, or of another type.
    #[error("{path}: {message}")]
    Field {
        /// The field, as `spec.limits.memory`; `Module` for the whole.
        path: String,
        /// What is wrong.
        message: String,
    },
}

impl Module {
    /// Reads a Module from a parsed document.
    ///
    /// Only the shape is checked; [`ValidatedSpec::new`](crate::ValidatedSpec::new) checks the
    /// values.
    pub fn from_value(value: &Value) -> Result<Self, ModuleError> {
        let said = |member: &str| match value.get(member) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "(none)".to_owned(),
        };
        let (api_version, kind) = (said("apiVersion"), said("kind"));
        if api_version != API_VERSION || kind != KIND {
            return Err(ModuleError::Kind { api_version, kind });
        }
        if let Some((path, message)) = renamed::find(value) {
            return Err(ModuleError::Field { path, message });
        }
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            ModuleError::Field {
                path: if path == "." { KIND.to_owned() } else { path },
                message: error.inner().to_string(),
            }
        })
    }
}
