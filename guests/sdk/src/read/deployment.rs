use serde::Deserialize;

use crate::{Metadata, Resource};

/// A Deployment's metadata and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Its metadata.
    pub metadata: Metadata,
    /// What its controller says.
    pub status: DeploymentStatus,
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
