//! Thin views of objects that guests read: the fields that reconcile logic asks for, and
//! nothing else. A guest that needs more writes its own struct and implements
//! [`Resource`](crate::Resource) for it.

use std::collections::BTreeMap;

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

/// A ConfigMap's texts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// Its metadata.
    pub metadata: Metadata,
    /// Texts by key.
    pub data: BTreeMap<String, String>,
}

impl Resource for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
}

/// A Secret as guests see it: keys, and of each value a digest (the first 16 hex digits of a
/// keyed hash). It tells whether a value changed, never what it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Its metadata.
    pub metadata: Metadata,
    /// Digests by key.
    pub data: BTreeMap<String, String>,
}

impl Resource for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
    const PLURAL: &'static str = "secrets";
}
