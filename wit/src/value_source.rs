use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An object whose values the host copies into a desired object, without the guest seeing them.
///
/// `valueSources` of the Module has to grant the source and the namespace of the desired object.
/// The host copies a Secret into Secrets only, and a `ConfigMap` into `ConfigMaps` only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueSource {
    /// Kind of the source.
    pub kind: ValueSourceKind,
    /// Namespace of the source. Default: the primary's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the source.
    pub name: String,
    /// Which keys of the source the host copies, and the key in the desired object for each.
    /// Default: all keys, each to the same key. Limits: 1 to 256 entries; no key that another
    /// source or the object itself has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<BTreeMap<String, String>>,
}

/// The kind of a value source, of the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ValueSourceKind {
    /// A Secret. Its values stay hidden from the guest.
    Secret,
    /// A `ConfigMap`.
    ConfigMap,
}

impl ValueSourceKind {
    /// Returns the kind as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}

impl std::fmt::Display for ValueSourceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
