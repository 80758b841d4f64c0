use std::collections::BTreeMap;

use serde::Serialize;

use crate::Metadata;

/// A `PersistentVolumeClaim`: storage that outlives pods.
///
/// The host deletes one only if the guest desired it with
/// [`Policy::Deletable`](crate::Policy::Deletable). Of its spec only the size can change: it can
/// grow if the storage class allows volume expansion.
#[derive(Clone, Debug, Serialize)]
pub struct PersistentVolumeClaim {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ClaimSpec,
}

/// The spec of a `PersistentVolumeClaim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// Access modes.
    pub access_modes: Vec<AccessMode>,
    /// Requested size.
    pub resources: ClaimResources,
    /// Storage class; the cluster's default class if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// Which pods may mount a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AccessMode {
    /// Pods of one node.
    ReadWriteOnce,
    /// One pod.
    ReadWriteOncePod,
    /// Pods of all nodes.
    ReadWriteMany,
    /// Pods of all nodes, read-only.
    ReadOnlyMany,
}

/// The size that a claim requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimResources {
    /// Quantity by resource: `storage` (`1Gi`).
    pub requests: BTreeMap<String, String>,
}

impl PersistentVolumeClaim {
    /// Creates a claim with the access mode `ReadWriteOnce`. `size` is a quantity (`1Gi`).
    pub fn new(name: impl Into<String>, size: impl Into<String>) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: ClaimSpec {
                access_modes: vec![AccessMode::ReadWriteOnce],
                resources: ClaimResources {
                    requests: BTreeMap::from([("storage".to_owned(), size.into())]),
                },
                storage_class_name: None,
            },
        }
    }

    /// Sets the access mode.
    pub fn access_mode(mut self, mode: AccessMode) -> Self {
        self.spec.access_modes = vec![mode];
        self
    }

    /// Sets the storage class.
    pub fn storage_class(mut self, name: impl Into<String>) -> Self {
        self.spec.storage_class_name = Some(name.into());
        self
    }
}

crate::kind!(Apply for PersistentVolumeClaim, "v1", "persistentvolumeclaims");
