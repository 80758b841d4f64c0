//! Types for objects that guests read, with the fields that reconcile logic commonly needs. For
//! other kinds and fields, write a struct of your own and implement
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

/// A condition in the status of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCondition {
    /// Type, CamelCase.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason, one CamelCase word.
    pub reason: String,
    /// Message for people.
    pub message: String,
    /// Generation that the condition is about; 0 if not set.
    pub observed_generation: i64,
}

/// Returns whether a condition of this type is `True`.
pub(crate) fn is_true(conditions: &[StatusCondition], type_: &str) -> bool {
    conditions.iter().any(|one| one.type_ == type_ && one.status == "True")
}
