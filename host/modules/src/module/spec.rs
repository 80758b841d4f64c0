//! `spec` of a Module. The doc comments are the descriptions in its CustomResourceDefinition.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The desired state of a module.
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

    /// How a candidate becomes active.
    #[serde(default, skip_serializing_if = "Rollout::is_default")]
    pub rollout: Rollout,
}

/// How a candidate becomes active.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// Immediate: as soon as it is checked. Guarded (if left out): after a run on the present
    /// primaries without writes; it requires an approval if it would delete or fail more than the
    /// limits here allow. Manual: every candidate requires an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    /// Maximum number of objects that a candidate may delete without an approval; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_deletions: Option<u32>,

    /// Maximum percentage of the existing objects that a candidate may change without an approval;
    /// 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_changed_percent: Option<u32>,

    /// Maximum number of newly failing primaries before an approval is required or the swap is
    /// rolled back; 0 if left out.
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

/// When a candidate becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// As soon as it is checked.
    Immediate,
    /// When its preview shows nothing that requires an approval.
    Guarded,
    /// When a user has approved it.
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
