use serde::Deserialize;

use super::PodTemplate;
use crate::Metadata;

/// A `ReplicaSet`: its metadata, the metadata of its pods, and its status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ReplicaSetSpec,
    /// Status.
    pub status: ReplicaSetStatus,
}

/// The spec of a `ReplicaSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetSpec {
    /// Number of pods; the API server's default is 1.
    pub replicas: Option<i32>,
    /// Template of the pods.
    pub template: PodTemplate,
}

/// The status of a `ReplicaSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    /// Generation that the status is about.
    pub observed_generation: i64,
    /// Number of pods.
    pub replicas: i32,
    /// Number of these that are ready.
    pub ready_replicas: i32,
    /// Number of these that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
}

crate::kind!(Primary for ReplicaSet, "apps/v1", "replicasets");
