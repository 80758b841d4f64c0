//! The kind of a keyspace: a logical database in a cell.

use innkeeper_sdk::{CustomResource, Metadata, kind};
use serde::{Deserialize, Serialize};

use super::inherited::Inherited;
use super::shard::Shard;
use super::tablets::Tablets;

/// A `VitessKeyspace`.
#[derive(Deserialize, Serialize)]
pub struct VitessKeyspace {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: VitessKeyspaceSpec,
}

/// Desired state of a `VitessKeyspace`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessKeyspaceSpec {
    /// The keyspace.
    #[serde(flatten)]
    pub keyspace: Keyspace,
    /// What the cell passes down.
    #[serde(flatten)]
    pub inherited: Inherited,
    /// Name of the cell.
    pub cell: String,
}

/// A keyspace in the spec of its cluster.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Keyspace {
    /// Name.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub name: String,
    /// Names of the cells with its tablets.
    pub cells: Vec<String>,
    /// Shards.
    #[serde(default = "unsharded")]
    pub shards: Vec<Shard>,
    /// Tablets of each shard.
    pub tablets: Tablets,
}

fn unsharded() -> Vec<Shard> {
    vec![Shard { name: Some("0".to_owned()), key_range: None }]
}

/// Observed state of a `VitessKeyspace`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessKeyspaceStatus {
    /// Names of the shards.
    pub shards: Vec<String>,
    /// Names of those that are ready.
    pub ready_shards: Vec<String>,
}

kind!(Primary + Apply for VitessKeyspace, "vitess.io/v1alpha1", "vitesskeyspaces");

impl CustomResource for VitessKeyspace {
    type Spec = VitessKeyspaceSpec;
    type Status = VitessKeyspaceStatus;
    const SHORT_NAMES: &'static [&'static str] = &["vtk"];
}
