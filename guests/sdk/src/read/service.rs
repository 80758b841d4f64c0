use serde::Deserialize;

use crate::{Labels, Metadata, Resource};

/// A Service's metadata and selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Its metadata.
    pub metadata: Metadata,
    /// Which pods it serves.
    pub spec: ServiceSpec,
}

/// Which pods a Service serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Pods with all of these labels.
    pub selector: Labels,
}

impl Resource for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const PLURAL: &'static str = "services";
}
