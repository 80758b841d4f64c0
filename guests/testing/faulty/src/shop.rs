//! The primary.

use std::collections::BTreeMap;

use innkeeper_sdk::prelude::*;
use serde::{Deserialize, Serialize};

/// A Shop, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Shop {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ShopSpec,
    /// Status.
    #[serde(default)]
    pub status: ShopStatus,
}

/// Desired state of a Shop.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ShopSpec {
    /// Image of the container.
    #[serde(default)]
    pub image: String,
    /// Number of Pods.
    #[serde(default)]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0, max = 10)))]
    pub replicas: u32,
    /// Whether the Deployment has no Pods for the time being.
    #[serde(default)]
    pub paused: bool,
    /// Settings of the program.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Names of further ConfigMaps.
    #[serde(default)]
    pub pages: Vec<String>,
    /// Size of the database in GiB; 0 for none.
    #[serde(default)]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0, max = 2)))]
    pub storage: u32,
    /// Whether there is a claim for files.
    #[serde(default)]
    pub files: bool,
    /// Whether a Job migrates the data.
    #[serde(default)]
    pub migrate: bool,
    /// Whether the container gets the password of the Secret that has the name of the Shop with
    /// `-password`.
    #[serde(default)]
    pub password: bool,
    /// Whether the Pods never start in a simulated cluster.
    #[serde(default)]
    pub is_stuck: bool,
}

/// Observed state of a Shop.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ShopStatus {
    /// Whether the Shop was set up.
    #[serde(default)]
    pub initialized: bool,
    /// Number of Pods that the Deployment is to have.
    #[serde(default)]
    pub replicas: u32,
    /// Whether all objects could be applied.
    #[serde(default)]
    pub is_applied: bool,
    /// What a bug counts.
    #[serde(default)]
    pub count: i64,
    /// What a bug remembers.
    #[serde(default)]
    pub note: String,
}

innkeeper_sdk::kind!(Primary for Shop, "example.innkeeper.dev/v1", "shops");

impl CustomResource for Shop {
    type Spec = ShopSpec;
    type Status = ShopStatus;
}
