use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Metadata, Resource};

/// A ConfigMap.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// Metadata.
    pub metadata: Metadata,
    /// Values by key.
    pub data: BTreeMap<String, String>,
}

impl Resource for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
}
