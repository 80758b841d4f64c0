use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Condition, Event, ReadFields, RevisionHistory, UpdateGroup, ValueSource};

/// The desired state: the document of the outcomes `complete` and `partial`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Desired {
    /// Objects that the guest wants to exist for the primary. Limits: at most `limits.maxObjects`
    /// of the Module. The host deletes objects of earlier runs that are not here if the outcome is
    /// `complete`, and none if it is `partial`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<DesiredObject>,
    /// Groups of objects that the host updates together, a few at a time for example. Limits: at
    /// most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub update_groups: Vec<UpdateGroup>,
    /// The history of the primary's fields that the host stores. Default: none. Limits: only for a
    /// namespaced primary that is no Secret, and not of a guest that decorates its primaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history: Option<RevisionHistory>,
    /// Objects of earlier runs that the host neither deletes nor changes although they are not in
    /// `objects`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Reference>,
    /// In answer to `deleting`: the finalization is done. The host removes the finalizer as soon as
    /// the objects that are no longer desired are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalized: bool,
    /// Status of the primary, without `conditions` and `observedGeneration`, which the host writes.
    /// A guest that decorates its primaries returns none. Limits: at most 256 KiB, together with
    /// conditions and events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// Conditions of the primary. The host adds `lastTransitionTime` and `observedGeneration`.
    /// Limits: at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Events about the primary. The host counts an Event that repeats instead of writing it again.
    /// Limits: at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Seconds after which the host runs the guest again even if nothing changed; a shorter resync
    /// period runs it earlier. 0 counts as left out. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<u32>,
    /// All fields that this run read: of the primary, of owned objects, and of the answers to
    /// `get` and `list`. The host does not run the guest again for a change of other fields that
    /// the host itself does not need. Identity and readiness of objects count as read, also those
    /// of kinds that are not listed. Default: the run may have read every field. Limits: kinds of
    /// the manifest, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Without `null`, as the other lists.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ReadFields>"))]
    pub read_fields: Option<Vec<ReadFields>>,
}

/// A desired object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesiredObject {
    /// The object: `apiVersion`, `kind`, `metadata.name`, `metadata.namespace` (the primary's if
    /// left out), and the fields that the guest sets. A field that is left out belongs to its other
    /// field managers (`replicas` to an autoscaler). Limits: no `status`; of `metadata` only
    /// `name`, `namespace`, `labels`, `annotations`, and `finalizers` if `allowFinalizers` of the
    /// Module is true.
    pub object: Value,
    /// How the host treats the object differently from the default: owned by the primary, kept as
    /// desired, deleted when no longer desired. `merge` excludes the other policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<Policy>,
    /// Name of the update group in `updateGroups` that the object belongs to. Default: none, the
    /// host updates the object at once. Limits: not with `merge` and `create-only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_group: Option<String>,
    /// Objects whose values the host copies into this one, without the guest seeing them. Limits:
    /// at most 8, of 1 MiB together; not with `merge` and `orphan`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<ValueSource>,
}

/// How the host treats an object differently from the default: owned by the primary, kept as
/// desired, deleted when no longer desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// The host creates the object and does not change it later.
    CreateOnly,
    /// The host deletes and recreates the object to change an immutable field.
    RecreateWhenImmutable,
    /// The object has no owner reference and stays when the primary is deleted. It carries the
    /// label `innkeeper.dev/retained-for`, by which a later primary of the same kind, namespace and
    /// name adopts it.
    Orphan,
    /// The object belongs to another client: the host only merges the given fields into it, without
    /// force, and unmerges them when they are no longer desired. They stay when the primary is
    /// deleted, unless the guest has a finalizer.
    Merge,
    /// The host may delete the object by pruning or recreating it although its kind holds data
    /// (`PersistentVolumeClaim`, Namespace, ...).
    Deletable,
    /// The object stands for itself: a conflict about it holds back no other object of the primary,
    /// and a conflict about another object does not hold it back. Without the policy, a conflict
    /// holds back the creates in its namespace; that of a cluster-scoped object, all creates.
    Independent,
}

/// A reference to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Group and version (`apps/v1`), or the version alone for the core group (`v1`).
    pub api_version: String,
    /// Kind, CamelCase and singular (`Deployment`).
    pub kind: String,
    /// Namespace. Empty for cluster-scoped kinds; in `keep`, empty also means the namespace of the
    /// primary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}
