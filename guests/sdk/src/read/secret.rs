use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Metadata;

/// A Secret as guests see it: its keys, and a digest of each value (the first 16 hex digits of a
/// keyed hash), which shows whether the value changed but not the value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Metadata.
    pub metadata: Metadata,
    /// Digests of the values by key.
    pub data: BTreeMap<String, String>,
}

crate::kind!(Primary for Secret, "v1", "secrets");
