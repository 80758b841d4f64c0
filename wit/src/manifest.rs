use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Kind;

/// What a guest is: the answer of `describe`.
///
/// It is a request, not a grant: what the guest may do is what its module's
/// ServiceAccount may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// The guest's name, for people.
    pub name: String,
    /// The guest's own version, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind that it reconciles.
    pub primary: Kind,
    /// The kinds that it may give in `desired`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<OwnedKind>,
    /// Further kinds that it reads by `cluster.get` and `cluster.list`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Kind>,
    /// `CustomResourceDefinitions` (`apiextensions.k8s.io/v1`) that the host installs, if the
    /// Module's `allowedCRDGroups` allows their groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crds: Vec<Value>,
    /// Reconcile every primary again after this many seconds even if nothing changed.
    /// The Module's `resyncPeriod` goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_seconds: Option<u32>,
    /// A finalizer on every primary: the guest is asked once more, with `deleting`, before
    /// a primary goes. `innkeeper.dev/<module>` is the name if this is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// The guest decorates its primaries, which another module or another controller controls: any
    /// number may. It gives no status and no conditions; it makes objects, and merges fields. Kinds
    /// of Kubernetes' own are always decorated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,
    /// JSON Schema of the Module's `parameters`; without it a Module must not give any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_schema: Option<Value>,
}

/// A kind that a guest makes objects of, or merges into. It may be the primary's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnedKind {
    /// The kind.
    pub kind: Kind,
    /// The cluster may not serve the kind (OpenShift's Route on plain Kubernetes): its objects
    /// are then left out without an error, and made as soon as it is served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The guest makes none of its own: it only merges into what is there (the policy `merge`), so
    /// that its module needs no right to create and delete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merges: bool,
}
