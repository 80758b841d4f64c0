//! The built-in kinds, from the table that `cargo xtask openapi` writes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use crate::types::schema::BUILTIN_DOCUMENT;

/// The table of the built-in kinds.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Table {
    /// Groups but the core one, as discovery shows them.
    pub(crate) groups: BTreeMap<String, Value>,
    /// By `apps/v1`: the resources of a group, as discovery shows them.
    pub(crate) resources: BTreeMap<String, Vec<Value>>,
    /// By `apps/v1 Deployment`: the name of the type.
    pub(crate) kinds: BTreeMap<String, String>,
}

/// The version that is simulated.
pub(crate) const GIT_VERSION: &str = "v1.35.4";

/// A group and version, as objects have them.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The table, read once.
pub(crate) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| serde_json::from_str(BUILTIN_DOCUMENT).unwrap_or_default())
}

/// A kind that Kubernetes serves itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinKind {
    /// CamelCase and singular.
    pub kind: String,
    /// The resource's name in URLs and in RBAC.
    pub plural: String,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

/// The kinds of a group of Kubernetes' own, in all its versions; none for another group.
pub fn builtin_kinds(group: &str) -> Vec<BuiltinKind> {
    let all = table().resources.iter();
    let versions =
        all.filter(|(version, _)| version.rsplit_once('/').map_or("", |of| of.0) == group);
    let resources = versions.flat_map(|(_, resources)| resources);
    let text =
        |resource: &Value, member: &str| resource[member].as_str().unwrap_or_default().to_owned();
    resources
        .map(|resource| BuiltinKind {
            kind: text(resource, "kind"),
            plural: text(resource, "name"),
            namespaced: resource["namespaced"] == true,
        })
        .filter(|one| !one.plural.contains('/'))
        .collect()
}

/// The types as the document has them, for OpenAPI. They are parsed once, when they are needed.
pub(crate) fn raw_types() -> &'static Value {
    static TYPES: OnceLock<Value> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut table: Value = serde_json::from_str(BUILTIN_DOCUMENT).unwrap_or_default();
        table["types"].take()
    })
}
