use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Metadata, Resource};

/// A ConfigMap's texts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// Its metadata.
    pub metadata: Metadata,
    /// Texts by key.
    pub data: BTreeMap<String, String>,
}

impl Resource for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
}
