use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{StatusCondition, is_true};
use crate::{Metadata, Resource};

/// A Pod's metadata, images and state.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs.
    pub spec: PodSpec,
    /// What its kubelet says.
    pub status: PodStatus,
}

/// What a pod runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSpec {
    /// Its containers.
    pub containers: Vec<PodContainer>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodContainer {
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its readiness probe, if it has one; what it does is not read.
    pub readiness_probe: Option<IgnoredAny>,
}

/// What the kubelet says of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// How far it is.
    pub phase: PodPhase,
    /// Its conditions.
    pub conditions: Vec<StatusCondition>,
    /// Its init containers' states.
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodPhase {
    /// Not all containers have started yet.
    #[default]
    Pending,
    /// Its containers have started.
    Running,
    /// All its containers ended with 0, and none is started again.
    Succeeded,
    /// All its containers ended, and one failed; or it was evicted.
    Failed,
    /// Its node is not heard of.
    #[serde(other)]
    Unknown,
}

/// The state of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// What it does.
    pub state: ContainerState,
}

/// What a container does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It ended.
    pub terminated: Option<Terminated>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Its exit code.
    pub exit_code: i32,
}

impl Pod {
    /// It takes connections.
    pub fn is_serving(&self) -> bool {
        self.status.phase == PodPhase::Running
            && is_true(&self.status.conditions, "Ready")
            && !self.is_terminating()
    }

    /// All its containers ended, and none is started again: it will not serve any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// It is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// A container of this name.
    pub fn container(&self, name: &str) -> Option<&PodContainer> {
        self.spec.containers.iter().find(|one| one.name == name)
    }

    /// How an init container ended; `None` if it has not, or if there is none of this name.
    pub fn init_exit_code(&self, container: &str) -> Option<i32> {
        let found = self.status.init_container_statuses.iter().find(|one| one.name == container);
        found?.state.terminated.as_ref().map(|terminated| terminated.exit_code)
    }
}

impl Resource for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";
}
