use serde::Deserialize;

use crate::Metadata;

/// A `ServiceAccount`: its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServiceAccount {
    /// Metadata.
    pub metadata: Metadata,
}

crate::kind!(Primary for ServiceAccount, "v1", "serviceaccounts");
