use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Kind, PrimarySelector};

/// The manifest of a guest: the document that `describe` returns.
///
/// It grants nothing: RBAC of the module's ServiceAccount decides what the module may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// Name of the guest, for people.
    pub name: String,
    /// Version of the guest, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind that the guest reconciles.
    pub primary: Kind,
    /// Which objects of the primary kind the guest reconciles; all if left out. The Module can
    /// narrow the selection further, and not widen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PrimarySelector>,
    /// Kinds of the objects that the guest may desire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<OwnedKind>,
    /// Other kinds that the guest reads by `cluster.get` and `cluster.list`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Kind>,
    /// `CustomResourceDefinitions` (`apiextensions.k8s.io/v1`) that the host installs if the
    /// Module's `allowedCRDGroups` contain their groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<Value>,
    /// Seconds after which the host reconciles every primary again even if nothing changed. The
    /// Module's `resyncPeriod` overrides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_seconds: Option<u32>,
    /// Finalizer that the host adds to every primary: it runs the guest for a deleted primary with
    /// `deleting` until the guest returns `finalized`. If empty, `innkeeper.dev/<module>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Whether another module or controller owns the primaries. The guest then returns no status
    /// and no conditions; any number of modules may select the same primaries. Always so for
    /// Kubernetes' own kinds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,
    /// JSON Schema of the Module's `parameters`. Without it the host rejects a Module with
    /// parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_schema: Option<Value>,
}

/// A kind of which a guest creates objects, or into whose objects it merges fields. It may be the
/// primary's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnedKind {
    /// The kind.
    pub kind: Kind,
    /// Whether the cluster may lack the kind (OpenShift's Route on plain Kubernetes). The host then
    /// leaves its objects out without an error, and creates them as soon as the kind is served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the guest only merges fields into existing objects (policy `merge`), so that the
    /// module needs no rights to create and delete them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merges: bool,
}
