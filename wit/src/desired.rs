use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Condition, Event};

/// What should be: the text of `complete` and `partial`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Desired {
    /// The objects that should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<DesiredObject>,
    /// Objects made before that stay as they are although they are not in `objects`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Reference>,
    /// Asked with `deleting`: nothing is left to do, the finalizer may go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalized: bool,
    /// The primary's status, without `conditions` and `observedGeneration`, which the host writes.
    /// With the conditions at most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// Conditions of the primary, at most 64. The host adds times and generation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Events about the primary, at most 32. One that repeats is counted, not written again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Run again after this many seconds even if nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeue_after_seconds: Option<u32>,
}

/// An object that should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesiredObject {
    /// The fields that the guest wants, and no others: `apiVersion`, `kind`, `metadata.name`,
    /// `metadata.namespace` (the primary's if left out), and what it has an opinion about.
    /// A field left out belongs to whoever sets it (replicas under an autoscaler).
    pub object: Value,
    /// How it differs from an ordinary owned object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<Policy>,
}

/// How an object differs from an ordinary one (owned, kept as desired, pruned).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// Made once; later differences are left alone.
    CreateOnly,
    /// Deleted and made anew where an immutable field has to change.
    RecreateWhenImmutable,
    /// Not owned: it stays when the primary goes, and a primary of the same kind, namespace and
    /// name takes it up again. It has the label `innkeeper.dev/retained-for`.
    Orphan,
    /// Somebody else's object: only the given fields are merged into it, without force. They are
    /// taken back when they are no longer wanted; when the primary goes they stay, unless the guest
    /// has a finalizer.
    Merge,
    /// A kind that holds data (`PersistentVolumeClaim`, Namespace, ...) may be deleted by prune or
    /// recreate.
    Deletable,
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds (and, in `keep`, for the primary's).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
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
