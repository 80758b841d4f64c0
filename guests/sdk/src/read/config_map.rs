use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Metadata;

/// A ConfigMap.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// Metadata.
    pub metadata: Metadata,
    /// Values by key.
    pub data: BTreeMap<String, String>,
}

crate::kind!(Primary for ConfigMap, "v1", "configmaps");
