//! `spec.valueSources` of a Module.

use innkeeper_contract::ValueSourceKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Secret or ConfigMap whose values the host copies into objects that the guest desires, without
/// the guest seeing them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueSource {
    /// Kind of the source: Secret or ConfigMap, of the core group.
    pub kind: ValueSourceKind,

    /// Namespace of the source. With spec.namespaces it must be one of these.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,

    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Keys that the host may copy. Default: all keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 253)))]
    pub keys: Vec<String>,

    /// Namespaces into which the host may copy the values; only "*" for every namespace in which
    /// the guest may desire objects.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 63)))]
    pub to_namespaces: Vec<String>,
}
