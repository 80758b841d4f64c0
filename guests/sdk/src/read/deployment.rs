use serde::Deserialize;

use crate::Metadata;

/// A Deployment: its metadata, the metadata of its pods, and its status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: DeploymentSpec,
    /// Status.
    pub status: DeploymentStatus,
}

/// The spec of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How the Deployment replaces pods.
    pub strategy: DeploymentStrategy,
    /// Template of the pods.
    pub template: PodTemplate,
}

/// How a Deployment replaces pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub type_: String,
}

/// The template of a workload's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    pub metadata: Metadata,
}

/// The status of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// Generation that the status is about.
    pub observed_generation: i64,
    /// Number of pods that are not terminating.
    pub replicas: i32,
    /// Number of these with the current template.
    pub updated_replicas: i32,
    /// Number of these that are ready.
    pub ready_replicas: i32,
    /// Number of these that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
}

crate::kind!(Primary for Deployment, "apps/v1", "deployments");
