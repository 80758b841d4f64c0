use serde::Serialize;

use super::{LabelSelector, PodTemplate};
use crate::Metadata;

/// A `ReplicaSet`: a number of equal pods, without rollouts.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, PodTemplate, ReplicaSet};
/// use innkeeper_sdk::labels;
///
/// let labels = labels([("app", "web"), ("color", "blue")]);
/// let template = PodTemplate::new(&labels).container(Container::new("web", "nginx:1"));
/// let blue = ReplicaSet::new("web-blue", &labels, template).replicas(2);
/// assert_eq!(blue.spec.replicas, Some(2));
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct ReplicaSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ReplicaSetSpec,
}

/// The spec of a `ReplicaSet`. The selector is immutable; a change of the template concerns new
/// pods only.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSetSpec {
    /// Number of pods; `None` if another field manager (an autoscaler) sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Seconds that a pod must be ready before it counts as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Selects the pods.
    pub selector: LabelSelector,
    /// Template of the pods.
    pub template: PodTemplate,
}

impl ReplicaSet {
    /// Creates a `ReplicaSet`. The template must carry the labels of `selector`.
    pub fn new(
        name: impl Into<String>,
        selector: impl Into<LabelSelector>,
        template: PodTemplate,
    ) -> Self {
        let selector = selector.into();
        let spec = ReplicaSetSpec { replicas: None, min_ready_seconds: None, selector, template };
        Self { metadata: Metadata::named(name), spec }
    }

    setters! {
        /// Sets the number of pods.
        replicas(spec.replicas: i32);
        /// Sets the seconds that a pod must be ready before it counts as available.
        min_ready_seconds(spec.min_ready_seconds: i32);
    }
}

crate::kind!(Apply for ReplicaSet, "apps/v1", "replicasets");
