//! The kind of a shard: a range of the keys of a keyspace.

use innkeeper_sdk::{CustomResource, Metadata, kind};
use serde::{Deserialize, Serialize};

use super::inherited::Inherited;
use super::tablets::Tablets;

/// A `VitessShard`.
#[derive(Deserialize, Serialize)]
pub struct VitessShard {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: VitessShardSpec,
}

/// Desired state of a `VitessShard`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessShardSpec {
    /// The shard.
    #[serde(flatten)]
    pub shard: Shard,
    /// What the keyspace passes down.
    #[serde(flatten)]
    pub inherited: Inherited,
    /// Name of the cell.
    pub cell: String,
    /// Name of the keyspace.
    pub keyspace: String,
    /// Tablets.
    pub tablets: Tablets,
}

/// A shard in the spec of its keyspace: it needs a name or a range.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Shard {
    /// Name, if it has no range; of a shard with a range `<start>-<end>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[-a-z0-9]+$"))
    )]
    pub name: Option<String>,
    /// Range of its keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_range: Option<KeyRange>,
}

/// A range of keys, as hexadecimal digits.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KeyRange {
    /// The first key; empty for the lowest.
    #[serde(default)]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 16), regex(pattern = "^[0-9a-f]*$"))
    )]
    pub start: String,
    /// The first key after the range; empty for the highest.
    #[serde(default)]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 16), regex(pattern = "^[0-9a-f]*$"))
    )]
    pub end: String,
}

impl Shard {
    /// Returns the name in Vitess.
    pub fn name(&self) -> String {
        match &self.key_range {
            Some(KeyRange { start, end }) => format!("{start}-{end}"),
            None => self.name.clone().unwrap_or_default(),
        }
    }

    /// Returns the name in names of objects, which have no `-` at their ends.
    pub fn object_name(&self) -> String {
        let end = |key: &str| if key.is_empty() { "x".to_owned() } else { key.to_owned() };
        match &self.key_range {
            Some(range) => format!("{}-{}", end(&range.start), end(&range.end)),
            None => self.name(),
        }
    }
}

/// Observed state of a `VitessShard`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessShardStatus {
    /// Numbers of the tablets.
    pub tablets: Vec<String>,
    /// Numbers of those whose pods are ready.
    pub ready_tablets: Vec<String>,
}

kind!(Primary + Apply for VitessShard, "vitess.io/v1alpha1", "vitessshards");

impl CustomResource for VitessShard {
    type Spec = VitessShardSpec;
    type Status = VitessShardStatus;
    const SHORT_NAMES: &'static [&'static str] = &["vts"];
}
