//! The kind of a cell: a zone with its servers and its part of the keyspaces.

use innkeeper_sdk::{CustomResource, Metadata, kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flags::Flags;
use super::inherited::Inherited;
use super::keyspace::Keyspace;

/// A `VitessCell`.
#[derive(Deserialize, Serialize)]
pub struct VitessCell {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: VitessCellSpec,
}

/// Desired state of a `VitessCell`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessCellSpec {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// What the cluster passes down.
    #[serde(flatten)]
    pub inherited: Inherited,
    /// Keyspaces with shards in the cell.
    #[serde(default)]
    pub keyspaces: Vec<Keyspace>,
}

/// A cell in the spec of its cluster.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Cell {
    /// Name. The cell `global` has the servers of the whole cluster, and no tablets.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub name: String,
    /// The etcd of the topology, if the etcd operator runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd: Option<Etcd>,
    /// The administration server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vtctld: Option<Server>,
    /// The routers of queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vtgate: Option<Server>,
}

/// An etcd.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Etcd {
    /// Version of etcd.
    pub version: String,
    /// Number of members.
    pub size: u32,
}

/// A server of a cell.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Server {
    /// Image.
    pub image: String,
    /// Number of pods.
    #[serde(default = "one")]
    pub replicas: i32,
    /// Compute resources, as of a container.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resources: Value,
    /// Further flags.
    #[serde(default)]
    pub flags: Flags,
}

fn one() -> i32 {
    1
}

/// Observed state of a `VitessCell`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessCellStatus {
    /// Names of the keyspaces.
    pub keyspaces: Vec<String>,
    /// Names of those that are ready.
    pub ready_keyspaces: Vec<String>,
    /// Objects of etcd.
    pub etcd: EtcdObjects,
    /// Objects of the administration server.
    pub vtctld: ServerObjects,
    /// Objects of the routers.
    pub vtgate: ServerObjects,
    /// Objects of the tablets.
    pub vttablet: TabletObjects,
    /// Whether the cluster knows the cell.
    pub cell_info_registered: bool,
}

/// Numbers of objects of etcd.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct EtcdObjects {
    /// `EtcdClusters`.
    pub clusters: usize,
    /// Those that are available.
    pub available_clusters: usize,
}

/// Numbers of objects of a server.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ServerObjects {
    /// Services.
    pub services: usize,
    /// `ConfigMaps`.
    pub config_maps: usize,
    /// Deployments.
    pub deployments: usize,
    /// Those that are available.
    pub available_deployments: usize,
}

/// Numbers of objects of the tablets that a cell has.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct TabletObjects {
    /// Services.
    pub services: usize,
}

kind!(Primary + Apply for VitessCell, "vitess.io/v1alpha1", "vitesscells");

impl CustomResource for VitessCell {
    type Spec = VitessCellSpec;
    type Status = VitessCellStatus;
    const SHORT_NAMES: &'static [&'static str] = &["vtc"];
}
