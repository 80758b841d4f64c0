//! `spec` of a Module. The doc comments are the descriptions in its CustomResourceDefinition.

use innkeeper_contract::PrimarySelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::policy::PolicySpec;
use super::value_source::ValueSource;

/// The desired state of a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own")]
pub struct ModuleSpec {
    /// Where the host finds the component.
    pub source: Source,

    /// The ServiceAccount, in the namespace innkeeper-modules, as which the host writes for this
    /// module. Its annotation innkeeper.dev/allowed-modules must name the module, and its RBAC
    /// decides what the module may do: `innkeeper rbac` prints the least rights that a guest needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// The API groups whose CustomResourceDefinitions the host may install if the guest describes
    /// them. The host refuses definitions of other groups, and uses a definition that the cluster
    /// already serves as it is. The guest's finalizer may be of these groups too. Groups of
    /// Kubernetes and of Innkeeper are not allowed.
    #[serde(rename = "allowedCRDGroups", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_crd_groups: Vec<String>,

    /// What the host does with foreign CustomResourceDefinitions of the groups in allowedCRDGroups:
    /// those that it did not install. Default: Keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdPolicy>,

    /// Parameters that the host passes to the guest in every run. They must match the
    /// parametersSchema of the guest's manifest; a guest without one takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,

    /// Interval at which the host reconciles every primary even if nothing changed, for example 30s
    /// or 1h30m; 0s for never. Default: the interval in the guest's manifest. Limits: 0s, or at
    /// least 1s. The annotation innkeeper.dev/resync-period of a primary overrides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub resync_period: Option<String>,

    /// Whether the host writes its conditions into the status of primaries. If false, it writes
    /// only the status that the guest returns.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub manage_status: bool,

    /// When the host renews the result of the last run (ansibleResult) in the condition Running of
    /// primaries. It writes that condition where the schema of their status declares ansibleResult,
    /// and where this field is set and the schema preserves unknown fields; never if manageStatus
    /// is false. Default: OnChange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_result: Option<RunResultRenewal>,

    /// Limits of the module.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,

    /// Which primaries the host reconciles, by labels, annotations and fields; all if left out. It
    /// narrows the selection of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PrimarySelector>,

    /// Namespaces whose primaries the host reconciles, and whose objects the policy reviews; with
    /// them it reviews no cluster-scoped objects. Default: all namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,

    /// Whether the guest may create objects outside the namespace of their primary. The guest then
    /// needs a finalizer, because Kubernetes does not delete such objects with the primary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_cross_namespace: bool,

    /// Whether the guest may set finalizers on objects that it creates. Such an object remains
    /// until somebody removes them. A finalizer on the primary needs no permission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_finalizers: bool,

    /// Names of Secrets, in the namespace of each primary, whose values the guest may read. Of the
    /// values of other Secrets it sees digests. The ServiceAccount needs the verb get on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub secret_names: Vec<String>,

    /// Secrets and ConfigMaps whose values the host copies into objects that the guest desires,
    /// without the guest seeing them. The ServiceAccount needs the verb get on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub value_sources: Vec<ValueSource>,

    /// Whether the host stops writing for this module: it creates, changes and deletes no objects
    /// for the module's primaries, and writes neither their status nor Events. It still finishes
    /// primaries that are being deleted, candidates still become active, and a policy still
    /// reviews.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// How the policy of the guest reviews requests. A guest with a policy needs it, and a guest
    /// without one must not have it. With it, limits.timeout is at most 20s. Default: none, and the
    /// host refuses a guest with a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,

    /// How a candidate becomes active.
    #[serde(default, skip_serializing_if = "Rollout::is_default")]
    pub rollout: Rollout,
}

/// When the host renews the result of the last run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunResultRenewal {
    /// When a run changed an object, and when anything else in the status changes.
    OnChange,
    /// Also when a primary is reconciled by its resync period, at most every 10 s. Each renewal
    /// costs one write.
    EachPeriod,
}

/// How a candidate becomes active.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// When a candidate becomes active. Default: Guarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    /// Maximum number of objects that a candidate may delete or recreate without an approval.
    /// Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_deletions: Option<u32>,

    /// Maximum percentage of the existing objects that a candidate may change without an approval.
    /// Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_changed_percent: Option<u32>,

    /// Maximum number of newly failing primaries, those for which the active revision does not
    /// fail, before an approval is required or the swap is rolled back. The same number counts for
    /// the reviews of a policy. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_failures: Option<u32>,

    /// Maximum number of existing objects and recent requests that a candidate of a policy, or
    /// other settings of one, may deny without an approval although they are allowed now. It
    /// counts where the mode is Enforce, in some namespaces at least. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_newly_denied: Option<u32>,

    /// Time after a swap in which the host rolls back to the previous revision if more primaries,
    /// or reviews of a policy, newly fail than maxFailures; 0s for never. Default: 2m. Limits: at
    /// most 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub rollback_window: Option<String>,
}

impl Rollout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What the host does with foreign CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CrdPolicy {
    /// It uses them as they are.
    Keep,
    /// It changes them to those of the guest, and they are the module's from then on. A change that
    /// takes something away requires an approval; the host refuses one that would lose stored data.
    Adopt,
}

/// When a candidate becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// When it is loaded, without a preview.
    Immediate,
    /// After a preview, a run on the present primaries without writes. It requires an approval if
    /// it exceeds the limits of the rollout.
    Guarded,
    /// After a preview and an approval.
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
    /// A ConfigMap in the namespace innkeeper-modules with the component, plain or gzip, in its
    /// binaryData; `innkeeper push` writes it. If its annotation innkeeper.dev/chunks is 3, the
    /// ConfigMaps NAME-chunk-2 and NAME-chunk-3 have the rest, under the same key.
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

    /// The key in binaryData. Default: guest.wasm, or the only key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// Limits of the module. A limit that is left out has the host's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Maximum linear memory of one call of the guest, as a quantity. Default: 64Mi. Limits: 64Ki
    /// to 4Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,

    /// Maximum time of one call of the guest, for example 500ms. Default: 1s. Limits: more than 0s,
    /// at most 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub timeout: Option<String>,

    /// Maximum time to compile the component, for example 2m. Default: 1m. Limits: more than 0s, at
    /// most 15m. A guest that contains an interpreter may need more where processors are slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h))+$"))]
    pub compile_timeout: Option<String>,

    /// Maximum size of the document that one call of the guest returns, as a quantity. Default:
    /// 4Mi. Limits: 1Ki to 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<Quantity>,

    /// Maximum size of the guest's log in one call, as a quantity. Default: 16Ki. Limits: 0 to
    /// 256Mi. The host drops further lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<Quantity>,

    /// Maximum number of objects that the guest may return for one primary. Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_objects: Option<u32>,

    /// Maximum number of reads (`cluster.get`, `cluster.list`) in one call. Default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_reads: Option<u32>,

    /// Maximum size of the host's records of the reads of all primaries, as a quantity. By these
    /// records the host knows which change concerns which primary. Default: 64Mi. Limits: 1Mi to
    /// 4Gi. Beyond it the host reconciles a primary that reads much on each change of the kinds
    /// that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_reads: Option<Quantity>,

    /// Maximum number of writes of the module in a second, on average. Default: 200. After a pause
    /// it may make twenty times as many at once for one namespace, thirty times for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub writes_per_second: Option<u32>,

    /// Maximum number of elements (references to functions) in all WebAssembly tables of one call.
    /// Default: 20000.
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
