use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Apply, Metadata, Resource};

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

impl Resource for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
}

impl Apply for ConfigMap {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
