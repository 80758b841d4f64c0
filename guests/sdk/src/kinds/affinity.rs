use serde::Serialize;

use super::LabelSelector;
use crate::Labels;

/// The label of nodes that tells one from another.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Where a pod may be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// Near other pods.
    pub pod_affinity: PodAffinity,
}

/// Near which pods a pod must be scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinity {
    /// All of these must hold when the pod is scheduled; not afterwards.
    pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
}

/// Pods, and what counts as near.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// The pods, of the same namespace.
    pub label_selector: LabelSelector,
    /// Nodes that agree in this label are one place.
    pub topology_key: String,
}

impl Affinity {
    /// On a node where a pod with these labels runs.
    pub fn same_node_as(labels: &Labels) -> Self {
        let term = PodAffinityTerm {
            label_selector: LabelSelector { match_labels: labels.clone() },
            topology_key: HOSTNAME.to_owned(),
        };
        Self {
            pod_affinity: PodAffinity {
                required_during_scheduling_ignored_during_execution: vec![term],
            },
        }
    }
}
