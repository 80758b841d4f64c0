use serde::Serialize;

use super::{Affinity, Container, Volume};
use crate::{Labels, Metadata};

/// A Pod without a workload controller: only the guest replaces it when it has ended. Almost all of
/// its spec except the images is immutable (see
/// [`Policy::RecreateWhenImmutable`](crate::Policy::RecreateWhenImmutable)).
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

/// The template of a workload's pods.
#[derive(Clone, Debug, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Spec of the pods.
    pub spec: PodSpec,
}

/// The spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers, which end before the containers start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// ServiceAccount; the namespace's `default` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Seconds that the pod has to stop; the API server's default is 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// When to restart containers that have ended; `Always` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// Scheduling constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Whether the containers get environment variables for the namespace's Services; they do if
    /// `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_service_links: Option<bool>,
    /// Whether the containers get the ServiceAccount's token; they do if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
}

impl PodSpec {
    /// Returns whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When the kubelet restarts containers that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RestartPolicy {
    /// Always.
    Always,
    /// If the container failed.
    OnFailure,
    /// Never.
    Never,
}

impl PodTemplate {
    /// Creates a template with these labels.
    pub fn new(labels: &Labels) -> Self {
        let metadata = Metadata { labels: labels.clone(), ..Metadata::default() };
        Self { metadata, spec: PodSpec::default() }
    }

    /// Adds a container.
    pub fn container(mut self, container: Container) -> Self {
        self.spec.containers.push(container);
        self
    }

    /// Adds an init container.
    pub fn init_container(mut self, container: Container) -> Self {
        self.spec.init_containers.push(container);
        self
    }

    /// Sets the ServiceAccount.
    pub fn service_account(mut self, name: impl Into<String>) -> Self {
        self.spec.service_account_name = Some(name.into());
        self
    }

    /// Adds an annotation. Changing its value rolls out new pods.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a volume.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.spec.volumes.push(volume);
        self
    }

    /// Sets the seconds that the pod has to stop.
    pub fn grace_seconds(mut self, seconds: i64) -> Self {
        self.spec.termination_grace_period_seconds = Some(seconds);
        self
    }

    /// Sets when to restart containers that have ended. Not `Always` in a Job.
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Self {
        self.spec.restart_policy = Some(policy);
        self
    }

    /// Sets the scheduling constraints.
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.spec.affinity = Some(affinity);
        self
    }

    /// Gives the containers no environment variables of Services and no ServiceAccount token.
    pub fn isolated(mut self) -> Self {
        self.spec.enable_service_links = Some(false);
        self.spec.automount_service_account_token = Some(false);
        self
    }
}
