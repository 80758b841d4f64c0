use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonText, Kind, KindParameter, PolicyManifest, PrimarySelector, ReadFields};

/// The manifest of a guest: the document that `describe` returns.
///
/// A guest reconciles a kind (`primary`), reviews admission requests (`policy`), or does both. What
/// is about primaries and their objects needs `primary`.
///
/// It grants nothing: RBAC of the module's ServiceAccount decides what the module may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// Name of the guest, for people. Limits: a DNS name (lower case letters, digits, `-` and `.`)
    /// of at most 253 characters.
    pub name: String,
    /// Version of the guest, for people. Default: none. Limits: a semantic version such as `1.2.0`,
    /// of at most 128 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind that the guest reconciles. The host calls `reconcile` for each object of it that
    /// the Module selects. Default: none, for a guest that only has a `policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Without `null`, so that the member has the type of earlier versions.
    #[cfg_attr(feature = "schema", schemars(with = "Kind"))]
    pub primary: Option<Kind>,
    /// Which objects of the primary kind the guest reconciles; all if left out. The Module can
    /// narrow the selection further, and not widen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<PrimarySelector>,
    /// Kinds of the objects that the guest may desire. The host watches them. Limits: `owned` and
    /// `reads` together at most 100 kinds; no kinds of Innkeeper, no definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owned: Vec<OwnedKind>,
    /// Other kinds that the guest reads by `cluster.get` and `cluster.list`. The host watches them,
    /// and reconciles again when an answer changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Kind>,
    /// The fields that `reconcile` reads of objects of these kinds. The host gives it objects of
    /// these kinds with these fields, `apiVersion`, `kind`, and name, namespace and uid only, and
    /// does not run it again for a change of other fields that the host itself does not need.
    /// Default: all fields of every kind. Limits: kinds of the manifest, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_fields: Vec<ReadFields>,
    /// CustomResourceDefinitions (`apiextensions.k8s.io/v1`) that the host installs if
    /// `allowedCRDGroups` of the Module has their groups. Limits: at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
    pub crds: Vec<JsonText>,
    /// Seconds after which the host reconciles every primary again even if nothing changed; 0 for
    /// never. `resyncPeriod` of the Module overrides it. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync_seconds: Option<u32>,
    /// Finalizer that the host adds to every primary: it runs the guest for a deleted primary with
    /// `deleting` until the guest returns `finalized`. The empty text means
    /// `innkeeper.dev/<module>`. Default: no finalizer. Limits: a name such as
    /// `example.com/cleanup`, of the group of the primary or of a group in `allowedCRDGroups` of
    /// the Module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Whether another module or controller owns the primaries. The guest then returns no status
    /// and no conditions, and any number of modules may select the same primaries. For Kubernetes'
    /// own kinds, such as Deployment, the host takes it as true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,
    /// JSON Schema of `parameters` of the Module. Default: none, and the host rejects a Module with
    /// parameters. Limits: drafts 2020-12, 2019-09 and 7; at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub parameters_schema: Option<JsonText>,
    /// Parameters of the Module that name kinds, in addition to the kinds of the manifest. Limits:
    /// at most 8; only with `parametersSchema`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind_parameters: Vec<KindParameter>,
    /// The admission requests that the guest reviews. The host calls `review` for each if the
    /// Module has `policy` too. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyManifest>,
}

impl Manifest {
    /// Returns whether the guest reviews requests and reconciles nothing.
    pub fn is_policy_only(&self) -> bool {
        self.primary.is_none() && self.policy.is_some()
    }

    /// Returns the values of `crds`, each parsed at each call.
    pub fn definitions(&self) -> impl Iterator<Item = Value> {
        self.crds.iter().map(JsonText::value)
    }
}

/// A kind of which a guest creates objects, or into whose objects it merges fields. It may be the
/// primary's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnedKind {
    /// The kind of the objects.
    pub kind: Kind,
    /// Whether the cluster may lack the kind, as plain Kubernetes lacks OpenShift's Route. If true,
    /// the host leaves its objects out without an error, and creates them as soon as the API server
    /// serves the kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the guest only merges fields into existing objects (policy `merge`). If true, the
    /// module needs no rights to create and delete them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merges: bool,
}
