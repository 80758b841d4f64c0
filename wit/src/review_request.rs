use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Operation;

/// The request to review: the argument of `review`.
///
/// `O` is the type of the objects. The document has no identifier of the request and no time: the
/// same request gives the same document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
// Without what is about Rust.
#[cfg_attr(
    feature = "schema",
    schemars(description = "The request to review: the argument of `review`.\n\nIt has no \
                            identifier of the request and no time: the same request gives the \
                            same document.")
)]
pub struct ReviewRequest<O = Value> {
    /// What the request does to the object.
    pub operation: Operation,
    /// Kind of the objects, in the version of the rule.
    pub kind: GroupVersionKind,
    /// Resource of the request, in the version of the rule.
    pub resource: GroupVersionResource,
    /// Subresource of the request, such as `scale` or `status`. Default: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// Kind as the client sent it, if it differs from `kind`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_kind: Option<GroupVersionKind>,
    /// Resource as the client sent it, if it differs from `resource`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_resource: Option<GroupVersionResource>,
    /// Name of the object; empty if the API server is to generate it.
    #[serde(default)]
    pub name: String,
    /// Namespace of the object; empty for a cluster-scoped object.
    #[serde(default)]
    pub namespace: String,
    /// Who sent the request.
    #[serde(default)]
    pub user: User,
    /// The object of the request, without `metadata.managedFields`; values of a Secret are
    /// digests. `null` for `DELETE`.
    #[serde(default)]
    pub object: Option<O>,
    /// The object as it is stored, without `metadata.managedFields`; values of a Secret are
    /// digests. `null` for `CREATE`.
    #[serde(default)]
    pub old_object: Option<O>,
    /// Options of the operation, for example `CreateOptions`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// Whether the API server stores nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether this is no request of a client: the host reviews an existing object as if it were
    /// created now. `user` is empty then.
    #[serde(default)]
    pub background: bool,
    /// `parameters` of the Module, validated against `parametersSchema` of the manifest.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
}

/// A kind in one version of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Kind, CamelCase and singular.
    pub kind: String,
}

/// A resource in one version of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupVersionResource {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Resource as in URLs, lower case and plural.
    pub resource: String,
}

/// Who sent a request, as the API server authenticated it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct User {
    /// Name, for example `system:serviceaccount:shop:deployer`.
    #[serde(default)]
    pub username: String,
    /// Identifier that no other user has at any time; empty if there is none.
    #[serde(default)]
    pub uid: String,
    /// Groups of the user.
    #[serde(default)]
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    #[serde(default)]
    pub extra: BTreeMap<String, Vec<String>>,
}
