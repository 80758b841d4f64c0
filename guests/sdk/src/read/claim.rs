use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Metadata;

/// A `PersistentVolumeClaim`: its metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Metadata.
    pub metadata: Metadata,
    /// Status.
    pub status: ClaimStatus,
}

/// The status of a `PersistentVolumeClaim`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: String,
    /// Size of the volume (`storage`), a quantity.
    pub capacity: BTreeMap<String, String>,
}

crate::kind!(Primary for PersistentVolumeClaim, "v1", "persistentvolumeclaims");
