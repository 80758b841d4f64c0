//! What users say about the tablets of a keyspace.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flags::Flags;

/// The tablets of a shard.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Tablets {
    /// What the other pools leave out.
    #[serde(default)]
    pub defaults: Pool,
    /// Tablets that can become the master.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_eligible: Option<Pool>,
    /// Tablets for queries that only read and may take long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Pool>,
}

/// Tablets of one type.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Pool {
    /// Number of tablets; 1 if left out here and in the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(max = 100)))]
    pub replicas: Option<u32>,
    /// Image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Spec of the claims, as Kubernetes documents it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim: Option<Value>,
    /// The container of Vitess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vttablet: Option<Process>,
    /// The container of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mysql: Option<Process>,
}

/// A container of a tablet.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Process {
    /// Compute resources, as of a container.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resources: Value,
    /// Further flags.
    #[serde(default)]
    pub flags: Flags,
}

impl Pool {
    /// Returns this with the defaults for what it leaves out.
    pub fn or(self, defaults: &Self) -> Self {
        let defaults = defaults.clone();
        Self {
            replicas: self.replicas.or(defaults.replicas),
            image: self.image.or(defaults.image),
            volume_claim: self.volume_claim.or(defaults.volume_claim),
            vttablet: self.vttablet.or(defaults.vttablet),
            mysql: self.mysql.or(defaults.mysql),
        }
    }
}
