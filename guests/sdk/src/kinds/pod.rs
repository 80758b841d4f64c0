use serde::Serialize;

use super::{Affinity, Container, Volume};
use crate::{Apply, Labels, Metadata, Resource};

/// A Pod of its own. Nobody replaces one that ended but whoever desires it; and of its spec
/// little more than the images can be changed (see
/// [`Policy::RecreateWhenImmutable`](crate::Policy::RecreateWhenImmutable)).
#[derive(Clone, Debug, Serialize)]
pub struct Pod {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs.
    #[serde(skip_serializing_if = "PodSpec::is_empty")]
    pub spec: PodSpec,
}

impl Pod {
    /// A Pod of this name from a template.
    pub fn new(name: impl Into<String>, template: PodTemplate) -> Self {
        let mut metadata = template.metadata;
        metadata.name = name.into();
        Self { metadata, spec: template.spec }
    }

    /// A Pod that somebody else makes, to merge labels or annotations into
    /// ([`Policy::Merge`](crate::Policy::Merge)).
    pub fn of_others(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), spec: PodSpec::default() }
    }
}

impl Resource for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";
}

impl Apply for Pod {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

/// The pods of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// What they run.
    pub spec: PodSpec,
}

/// What a pod runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its containers.
    pub containers: Vec<Container>,
    /// Containers that end before the others start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// The account that it runs as; the namespace's default if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// How long it may take to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// When containers that ended are started again; always if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// Where it may be scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Whether the namespace's Services are variables of its environment; they are if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_service_links: Option<bool>,
    /// Whether it has the ServiceAccount's token; it has if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Its volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
}

impl PodSpec {
    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When containers that ended are started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RestartPolicy {
    /// However they ended.
    Always,
    /// If they failed.
    OnFailure,
    /// Not at all.
    Never,
}

impl PodTemplate {
    /// Pods with these labels.
    pub fn new(labels: &Labels) -> Self {
        let metadata = Metadata { labels: labels.clone(), ..Metadata::default() };
        Self { metadata, spec: PodSpec::default() }
    }

    /// With this container too.
    pub fn container(mut self, container: Container) -> Self {
        self.spec.containers.push(container);
        self
    }

    /// With this init container too.
    pub fn init_container(mut self, container: Container) -> Self {
        self.spec.init_containers.push(container);
        self
    }

    /// Run as this ServiceAccount.
    pub fn service_account(mut self, name: impl Into<String>) -> Self {
        self.spec.service_account_name = Some(name.into());
        self
    }

    /// With this annotation too: a changed one rolls the pods out anew.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With this volume too.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.spec.volumes.push(volume);
        self
    }

    /// Given this many seconds to stop.
    pub fn grace_seconds(mut self, seconds: i64) -> Self {
        self.spec.termination_grace_period_seconds = Some(seconds);
        self
    }

    /// Containers that ended are started again then. A Job's must not be `Always`.
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Self {
        self.spec.restart_policy = Some(policy);
        self
    }

    /// Scheduled there only.
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.spec.affinity = Some(affinity);
        self
    }

    /// Knowing nothing of the cluster: no variables of Services, no ServiceAccount's token.
    pub fn isolated(mut self) -> Self {
        self.spec.enable_service_links = Some(false);
        self.spec.automount_service_account_token = Some(false);
        self
    }
}
