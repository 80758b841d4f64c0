use serde::Serialize;

use super::{LabelSelector, PodTemplate};
use crate::Metadata;

/// A `DaemonSet`: one pod per node.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, DaemonSet, PodTemplate};
/// use innkeeper_sdk::labels;
///
/// let labels = labels([("app", "agent")]);
/// let template = PodTemplate::new(&labels).container(Container::new("agent", "agent:1"));
/// let agent = DaemonSet::new("agent", &labels, template.node_label("disk", "ssd"));
/// assert_eq!(agent.spec.template.spec.verbatim["nodeSelector"]["disk"], "ssd");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct DaemonSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: DaemonSetSpec,
}

/// The spec of a `DaemonSet`. The selector is immutable.
#[derive(Clone, Debug, Serialize)]
pub struct DaemonSetSpec {
    /// Selects the pods.
    pub selector: LabelSelector,
    /// Template of the pods.
    pub template: PodTemplate,
}

impl DaemonSet {
    /// Creates a `DaemonSet`. The template must carry the labels of `selector`.
    pub fn new(
        name: impl Into<String>,
        selector: impl Into<LabelSelector>,
        template: PodTemplate,
    ) -> Self {
        let spec = DaemonSetSpec { selector: selector.into(), template };
        Self { metadata: Metadata::named(name), spec }
    }
}

crate::kind!(Apply for DaemonSet, "apps/v1", "daemonsets");
