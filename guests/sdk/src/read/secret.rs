use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Metadata, Resource};

/// A Secret as guests see it: keys, and of each value a digest (the first 16 hex digits of a
/// keyed hash). It tells whether a value changed, never what it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Its metadata.
    pub metadata: Metadata,
    /// Digests by key.
    pub data: BTreeMap<String, String>,
}

impl Resource for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
    const PLURAL: &'static str = "secrets";
}
