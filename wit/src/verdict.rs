use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a policy decides about a request: the document of the outcome `decided`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Whether the policy allows the request. It is required, so that an empty document allows
    /// nothing.
    pub allowed: bool,
    /// Why the policy denies the request, and what to do, for its user. Limits: the host cuts it
    /// after 4,096 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Reason of the denial for programs: one of Kubernetes' words, such as `Forbidden` or
    /// `Invalid`. Default: `Forbidden`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// HTTP status of the denial. The host takes the default for a number beyond the limits.
    /// Default: 403.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 400, max = 599)))]
    // Wider than a status, so that no number turns a denial into a document that cannot be read.
    pub code: Option<i64>,
    /// The fields at fault. Limits: the host leaves out those after the first 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Lines that the client shows to its user, whether the policy allows the request or denies it.
    /// Limits: 16 lines of 256 bytes; the host cuts the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Annotations of the API server's audit event. Limits: 16 of 1,024 bytes; the host cuts the
    /// rest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
    /// The whole object as the API server is to store it. Default: no change. Limits: only of a
    /// policy of the kind `Mutate` that allows the request, and not for `DELETE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

/// A field at fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Path of the field, for example `spec.containers[0].image`. Default: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// Reason for programs, such as `FieldValueInvalid`. Default: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
