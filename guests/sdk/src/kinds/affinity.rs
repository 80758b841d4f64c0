use serde::Serialize;

use super::LabelSelector;
use crate::Labels;

/// The label of nodes with a different value on each node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Scheduling constraints of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// Constraints relative to other pods.
    pub pod_affinity: PodAffinity,
}

/// The pods near which a pod must be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinity {
    /// Terms that must all be true when the pod is scheduled.
    pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
}

/// A selection of pods, and what counts as near.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// Selects pods of the same namespace.
    pub label_selector: LabelSelector,
    /// Nodes with the same value of this label are near each other.
    pub topology_key: String,
}

impl Affinity {
    /// Requires a node that runs a pod with these labels.
    pub fn same_node_as(labels: &Labels) -> Self {
        let term = PodAffinityTerm {
            label_selector: LabelSelector::from(labels),
            topology_key: HOSTNAME.to_owned(),
        };
        Self {
            pod_affinity: PodAffinity {
                required_during_scheduling_ignored_during_execution: vec![term],
            },
        }
    }
}
