use serde::Serialize;

use super::{LabelSelector, PersistentVolumeClaim, PodTemplate};
use crate::Metadata;

/// A `StatefulSet`: pods with stable names and claims of their own.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, PersistentVolumeClaim, PodTemplate, StatefulSet};
/// use innkeeper_sdk::labels;
///
/// let labels = labels([("app", "db")]);
/// let container = Container::new("db", "postgres:17").mount("data", "/data");
/// let db = StatefulSet::new("db", &labels, PodTemplate::new(&labels).container(container))
///     .service("db")
///     .replicas(3)
///     .claim(PersistentVolumeClaim::new("data", "1Gi"));
/// assert_eq!(db.spec.volume_claim_templates.len(), 1);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: StatefulSetSpec,
}

/// The spec of a `StatefulSet`. Selector, service and claims are immutable.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// Number of pods; `None` if another field manager (an autoscaler) sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Selects the pods.
    pub selector: LabelSelector,
    /// Headless Service that gives the pods their DNS names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// `OrderedReady` (the default) or `Parallel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_management_policy: Option<String>,
    /// Template of the pods.
    pub template: PodTemplate,
    /// Claims that each pod gets of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_claim_templates: Vec<PersistentVolumeClaim>,
}

impl StatefulSet {
    /// Creates a `StatefulSet`. The template must carry the labels of `selector`.
    pub fn new(
        name: impl Into<String>,
        selector: impl Into<LabelSelector>,
        template: PodTemplate,
    ) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: StatefulSetSpec {
                replicas: None,
                selector: selector.into(),
                service_name: None,
                pod_management_policy: None,
                template,
                volume_claim_templates: Vec::new(),
            },
        }
    }

    /// Adds a claim that each pod gets of its own; containers mount it by the claim's name.
    pub fn claim(mut self, claim: PersistentVolumeClaim) -> Self {
        self.spec.volume_claim_templates.push(claim);
        self
    }

    setters! {
        /// Sets the number of pods.
        replicas(spec.replicas: i32);
        /// Sets the headless Service that gives the pods their DNS names.
        service(spec.service_name: String);
        /// Sets whether pods start in order (`OrderedReady`) or at once (`Parallel`).
        pod_management_policy(spec.pod_management_policy: String);
    }
}

crate::kind!(Apply for StatefulSet, "apps/v1", "statefulsets");
