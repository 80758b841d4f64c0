//! Thin views of objects that guests read: the fields that reconcile logic asks for, and
//! nothing else. A guest that needs more writes its own struct and implements
//! [`Resource`](crate::Resource) for it.

mod config_map;
mod cron_job;
mod custom;
mod deployment;
mod job;
mod pod;
mod secret;
mod service;

pub use config_map::ConfigMap;
pub use cron_job::{CronJob, CronJobStatus};
pub use custom::{Custom, CustomStatus};
pub use deployment::{
    Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy, PodTemplate,
};
pub use job::{Job, JobStatus};
pub use pod::{
    ContainerState, ContainerStatus, Pod, PodContainer, PodPhase, PodSpec, PodStatus, Terminated,
};
pub use secret::Secret;
pub use service::{Service, ServiceSpec};

use serde::Deserialize;

/// A condition in a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCondition {
    /// What is said, in CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// The generation that it is about; 0 if it does not say.
    pub observed_generation: i64,
}

/// Whether a condition of this type is `True`.
pub(crate) fn is_true(conditions: &[StatusCondition], type_: &str) -> bool {
    conditions.iter().any(|one| one.type_ == type_ && one.status == "True")
}
