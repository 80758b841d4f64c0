//! Builders for the objects that guests make: thin, typed, and silent about what is not said.
//!
//! ```
//! use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate};
//! use innkeeper_sdk::{Apply, labels};
//!
//! let labels = labels([("app", "web")]);
//! let web = Deployment::new("web", &labels, PodTemplate::new(&labels).container(Container::new("web", "nginx:1")))
//!     .replicas(3)
//!     .label("team", "shop");
//! assert_eq!(web.spec.selector.match_labels["app"], "web");
//! ```
//!
//! A field that a builder lacks: the structs are plain data with public fields where that
//! helps, and a kind that is missing is a struct of the guest's own with [`Apply`](crate::Apply).

mod affinity;
mod claim;
mod config_map;
mod container;
mod cron_job;
mod deployment;
mod job;
mod pod;
mod probe;
mod service;
mod volume;

pub use affinity::{Affinity, PodAffinity, PodAffinityTerm};
pub use claim::{AccessMode, ClaimResources, ClaimSpec, PersistentVolumeClaim};
pub use config_map::ConfigMap;
pub use container::{
    Container, ContainerPort, EnvSource, EnvVar, ImagePullPolicy, Protocol, SecretKey,
};
pub use cron_job::{ConcurrencyPolicy, CronJob, CronJobSpec, JobTemplate};
pub use deployment::{Deployment, DeploymentSpec, DeploymentStrategy, LabelSelector};
pub use job::{JOB_NAME_LABEL, Job, JobSpec};
pub use pod::{Pod, PodSpec, PodTemplate, RestartPolicy};
pub use probe::{ExecAction, Probe, TcpSocketAction};
pub use service::{Service, ServicePort, ServiceSpec, ServiceType};
pub use volume::{ClaimSource, ConfigMapSource, EmptyDirSource, Volume, VolumeMount};

/// A port by number or by name, as Kubernetes' `IntOrString`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum PortRef {
    /// By number.
    Number(u16),
    /// By the name of a container's port.
    Name(String),
}

impl From<u16> for PortRef {
    fn from(number: u16) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for PortRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}
