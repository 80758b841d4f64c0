//! The kinds that an API server serves.

use serde_json::Value;

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedKind {
    /// The kind in lower case.
    pub(crate) kind: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
}

/// The media type of a document with all groups.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The kinds of a document with all groups.
pub(crate) fn kinds(document: &Value) -> Vec<ServedKind> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut kinds = Vec::new();
    for group in list(&document["items"]) {
        for version in list(&group["versions"]) {
            for resource in list(&version["resources"]) {
                let kind = text(&resource["responseKind"]["kind"]).to_lowercase();
                let group = text(&group["metadata"]["name"]);
                // The first version of a group is the one that clients prefer.
                let is_known = kinds
                    .iter()
                    .any(|known: &ServedKind| known.kind == kind && known.group == group);
                if !is_known && !kind.is_empty() {
                    kinds.push(ServedKind {
                        kind,
                        group,
                        version: text(&version["version"]),
                        plural: text(&resource["resource"]),
                    });
                }
            }
        }
    }
    kinds
}

impl ServedKind {
    /// The path of all objects of the kind.
    pub(crate) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}/{}", self.version, self.plural),
            group => format!("/apis/{group}/{}/{}", self.version, self.plural),
        }
    }
}
