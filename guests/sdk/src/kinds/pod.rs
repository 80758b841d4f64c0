use serde::Serialize;

use super::{PodSpec, PodTemplate};
use crate::Metadata;

/// A Pod without a workload controller: only the guest replaces it when it has ended. Almost all of
/// its spec except the images is immutable (see
/// [`Policy::RecreateWhenImmutable`](crate::Policy::RecreateWhenImmutable)).
///
/// ```
/// use innkeeper_sdk::kinds::{Container, Pod, PodTemplate};
/// use innkeeper_sdk::labels;
///
/// let template = PodTemplate::new(&labels([("app", "web")])).container(Container::new("web", "nginx:1"));
/// assert_eq!(Pod::new("web-0", template).metadata.labels["app"], "web");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Pod {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(skip_serializing_if = "PodSpec::is_empty")]
    pub spec: PodSpec,
}

impl Pod {
    /// Creates a Pod from a template.
    pub fn new(name: impl Into<String>, template: PodTemplate) -> Self {
        let mut metadata = template.metadata;
        metadata.name = name.into();
        Self { metadata, spec: template.spec }
    }

    /// Creates a Pod without a spec, to merge labels or annotations into a Pod of another
    /// controller ([`Policy::Merge`](crate::Policy::Merge)).
    pub fn of_others(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), spec: PodSpec::default() }
    }
}

crate::kind!(Apply for Pod, "v1", "pods");
