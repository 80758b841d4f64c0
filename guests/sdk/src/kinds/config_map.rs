use std::collections::BTreeMap;

use serde::Serialize;

use crate::Metadata;

/// A ConfigMap.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigMap {
    /// Metadata.
    pub metadata: Metadata,
    /// Values by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
}

impl ConfigMap {
    /// Creates an empty ConfigMap.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), data: BTreeMap::new() }
    }

    /// Adds a key with its value.
    pub fn data(mut self, key: &str, text: impl Into<String>) -> Self {
        self.data.insert(key.to_owned(), text.into());
        self
    }
}

crate::kind!(Apply for ConfigMap, "v1", "configmaps");
