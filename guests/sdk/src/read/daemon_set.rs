use serde::Deserialize;

use super::PodTemplate;
use crate::Metadata;

/// A `DaemonSet`: its metadata, the metadata of its pods, and its status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: DaemonSetSpec,
    /// Status.
    pub status: DaemonSetStatus,
}

/// The spec of a `DaemonSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DaemonSetSpec {
    /// Template of the pods.
    pub template: PodTemplate,
}

/// The status of a `DaemonSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    /// Generation that the status is about.
    pub observed_generation: i64,
    /// Number of nodes that should run a pod.
    pub desired_number_scheduled: i32,
    /// Number of these that run one with the current template.
    pub updated_number_scheduled: i32,
    /// Number of these whose pod is ready.
    pub number_ready: i32,
    /// Number of these whose pod has been ready for `minReadySeconds`.
    pub number_available: i32,
}

crate::kind!(Primary for DaemonSet, "apps/v1", "daemonsets");
