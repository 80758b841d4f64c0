use serde::Deserialize;

use super::{StatusCondition, is_true};
use crate::Metadata;

/// A Node: its metadata and conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: NodeSpec,
    /// Status.
    pub status: NodeStatus,
}

/// The spec of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Whether the scheduler places no new pods on the node.
    pub unschedulable: bool,
}

/// The status of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Conditions.
    pub conditions: Vec<StatusCondition>,
}

impl Node {
    /// Returns whether the node is ready.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }
}

crate::kind!(Primary for Node, "v1", "nodes", Cluster);
