use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Labels, or annotations: ordered, so that the same objects give the same text.
pub type Labels = BTreeMap<String, String>;

/// Labels from pairs.
///
/// ```
/// let labels = innkeeper_sdk::labels([("app", "web"), ("tier", "front")]);
/// assert_eq!(labels["tier"], "front");
/// ```
pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The part of `metadata` that guests read and write.
///
/// What the server sets (`uid`, `generation`, ...) is read and never written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace; in a desired object empty for the primary's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Labels,
    /// Set by the server: tells an object from a later one of the same name.
    #[serde(skip_serializing)]
    pub uid: String,
    /// Set by the server: counts changes of the spec; 0 if unknown.
    #[serde(skip_serializing)]
    pub generation: i64,
    /// Set by the server when the object is being deleted (RFC 3339).
    #[serde(skip_serializing)]
    pub deletion_timestamp: Option<String>,
}

impl Metadata {
    /// Metadata of an object of this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
