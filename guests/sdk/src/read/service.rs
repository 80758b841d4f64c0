use serde::Deserialize;

use crate::{Labels, Metadata, Resource};

/// A Service: its metadata and selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ServiceSpec,
}

/// The spec of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Selects pods with all of these labels.
    pub selector: Labels,
}

impl Resource for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const PLURAL: &'static str = "services";
}
