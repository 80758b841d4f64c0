use serde::Deserialize;

use crate::{Metadata, Resource};

/// A Deployment's metadata, its pods' metadata, and its status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs.
    pub spec: DeploymentSpec,
    /// What its controller says.
    pub status: DeploymentStatus,
}

/// What a Deployment runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How pods are replaced.
    pub strategy: DeploymentStrategy,
    /// The pods.
    pub template: PodTemplate,
}

/// How pods are replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub type_: String,
}

/// The pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Their labels and annotations.
    pub metadata: Metadata,
}

/// What the Deployment controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation that these figures are of.
    pub observed_generation: i64,
    /// Pods that are not terminating.
    pub replicas: i32,
    /// Of these, with the newest template.
    pub updated_replicas: i32,
    /// Of these, ready.
    pub ready_replicas: i32,
    /// Of these, ready for `minReadySeconds`.
    pub available_replicas: i32,
}

impl Resource for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
    const PLURAL: &'static str = "deployments";
}
