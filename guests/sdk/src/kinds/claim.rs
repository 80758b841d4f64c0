use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Apply, Metadata, Resource};

/// A `PersistentVolumeClaim`: storage that outlives pods.
///
/// The host never deletes one unless it was desired with
/// [`Policy::Deletable`](crate::Policy::Deletable); of its spec only the size can be changed,
/// upwards, and only where the storage class can.
#[derive(Clone, Debug, Serialize)]
pub struct PersistentVolumeClaim {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is claimed.
    pub spec: ClaimSpec,
}

/// What is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// Who may mount it.
    pub access_modes: Vec<AccessMode>,
    /// How much.
    pub resources: ClaimResources,
    /// From which class; the cluster's default if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// Who may mount a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AccessMode {
    /// The pods of one node.
    ReadWriteOnce,
    /// One pod.
    ReadWriteOncePod,
    /// The pods of all nodes.
    ReadWriteMany,
    /// The pods of all nodes, without writing.
    ReadOnlyMany,
}

/// How much is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimResources {
    /// By resource: `storage`, as a quantity (`1Gi`).
    pub requests: BTreeMap<String, String>,
}

impl PersistentVolumeClaim {
    /// A claim of so much storage (a quantity: `1Gi`) for the pods of one node.
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

    /// For these instead of one node's pods.
    pub fn access_mode(mut self, mode: AccessMode) -> Self {
        self.spec.access_modes = vec![mode];
        self
    }

    /// From this class instead of the cluster's default.
    pub fn storage_class(mut self, name: impl Into<String>) -> Self {
        self.spec.storage_class_name = Some(name.into());
        self
    }
}

impl Resource for PersistentVolumeClaim {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "PersistentVolumeClaim";
    const PLURAL: &'static str = "persistentvolumeclaims";
}

impl Apply for PersistentVolumeClaim {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
