use serde::Deserialize;

use crate::{Labels, Metadata};

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

crate::kind!(Primary for Service, "v1", "services");
