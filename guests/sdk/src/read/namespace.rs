use serde::Deserialize;

use crate::Metadata;

/// A Namespace: its metadata and phase.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Metadata.
    pub metadata: Metadata,
    /// Status.
    pub status: NamespaceStatus,
}

/// The status of a Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NamespaceStatus {
    /// `Active` or `Terminating`.
    pub phase: String,
}

impl Namespace {
    /// Returns whether the Namespace is being deleted: the API server then creates nothing in it.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() || self.status.phase == "Terminating"
    }
}

crate::kind!(Primary for Namespace, "v1", "namespaces", Cluster);
