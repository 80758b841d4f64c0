use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Labels or annotations, ordered by key so that equal objects serialize to equal text.
pub type Labels = BTreeMap<String, String>;

/// Builds labels from pairs of key and value.
///
/// ```
/// let labels = innkeeper_sdk::labels([("app", "web"), ("tier", "front")]);
/// assert_eq!(labels["tier"], "front");
/// ```
pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The fields of `metadata` that guests read and write.
///
/// Fields that the API server sets (`uid`, `generation` and the times) are deserialized and never
/// serialized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; in a desired object, empty means the primary's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Labels,
    /// Set by the API server: distinguishes the object from a later one of the same name.
    #[serde(skip_serializing)]
    pub uid: String,
    /// Set by the API server: counts changes of the spec; 0 if unknown.
    #[serde(skip_serializing)]
    pub generation: i64,
    /// Set by the API server when it creates the object (RFC 3339, see [`Time`](crate::Time)).
    #[serde(skip_serializing)]
    pub creation_timestamp: Option<String>,
    /// Set by the API server when the object is being deleted (RFC 3339).
    #[serde(skip_serializing)]
    pub deletion_timestamp: Option<String>,
}

impl Metadata {
    /// Creates metadata with this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
