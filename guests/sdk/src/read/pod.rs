use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{StatusCondition, is_true};
use crate::Metadata;

/// A Pod: its metadata, containers and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: PodSpec,
    /// Status.
    pub status: PodStatus,
}

/// The spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<PodContainer>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodContainer {
    /// Name.
    pub name: String,
    /// Image.
    pub image: String,
    /// Whether there is a readiness probe; its content is not deserialized.
    pub readiness_probe: Option<IgnoredAny>,
}

/// The status of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Phase.
    pub phase: PodPhase,
    /// Conditions.
    pub conditions: Vec<StatusCondition>,
    /// States of the init containers.
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// The phase of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PodPhase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// All containers have started.
    Running,
    /// All containers exited with 0 and will not restart.
    Succeeded,
    /// All containers have ended and one failed, or the pod was evicted.
    Failed,
    /// The control plane has lost contact with the pod's node.
    #[serde(other)]
    Unknown,
}

/// The state of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name.
    pub name: String,
    /// State.
    pub state: ContainerState,
    /// State before the container was last restarted.
    pub last_state: ContainerState,
}

/// The current state of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Set if the container has ended.
    pub terminated: Option<Terminated>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Exit code.
    pub exit_code: i32,
    /// The termination message that the container wrote.
    pub message: String,
}

impl Pod {
    /// Returns whether the pod runs, is ready, and is not being deleted.
    pub fn is_serving(&self) -> bool {
        self.status.phase == PodPhase::Running
            && is_true(&self.status.conditions, "Ready")
            && !self.is_terminating()
    }

    /// Returns whether all containers have ended and will not restart.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Returns whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the container with this name.
    pub fn container(&self, name: &str) -> Option<&PodContainer> {
        self.spec.containers.iter().find(|one| one.name == name)
    }

    /// Returns the exit code of an init container; `None` if it has not ended or does not exist.
    pub fn init_exit_code(&self, container: &str) -> Option<i32> {
        self.init_terminated(container).map(|terminated| terminated.exit_code)
    }

    /// Returns the termination message of an init container; `None` if it has not ended or does not
    /// exist.
    pub fn init_message(&self, container: &str) -> Option<&str> {
        self.init_terminated(container).map(|terminated| &*terminated.message)
    }

    fn init_terminated(&self, container: &str) -> Option<&Terminated> {
        let found = self.status.init_container_statuses.iter().find(|one| one.name == container);
        found?.state.terminated.as_ref()
    }
}

crate::kind!(Primary for Pod, "v1", "pods");
