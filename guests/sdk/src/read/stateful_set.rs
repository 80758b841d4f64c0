use serde::Deserialize;

use super::PodTemplate;
use crate::Metadata;

/// A `StatefulSet`: its metadata, the metadata of its pods, and its status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: StatefulSetSpec,
    /// Status.
    pub status: StatefulSetStatus,
}

/// The spec of a `StatefulSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    /// Number of pods; the API server's default is 1.
    pub replicas: Option<i32>,
    /// Template of the pods.
    pub template: PodTemplate,
    /// Claims that each pod gets of its own.
    pub volume_claim_templates: Vec<ClaimTemplate>,
}

/// A claim that each pod of a `StatefulSet` gets of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    /// Metadata; the claim of a pod is named `<template>-<pod>`.
    pub metadata: Metadata,
}

/// The status of a `StatefulSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// Generation that the status is about.
    pub observed_generation: i64,
    /// Number of pods.
    pub replicas: i32,
    /// Number of these with the current template.
    pub updated_replicas: i32,
    /// Number of these that are ready.
    pub ready_replicas: i32,
    /// Number of these that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
}

crate::kind!(Primary for StatefulSet, "apps/v1", "statefulsets");
