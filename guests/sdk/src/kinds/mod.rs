//! Typed builders for desired objects. A builder serializes only the fields that were set.
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
//! The structs are plain data with public fields. For a kind or field that is missing here, write
//! a struct of your own and implement [`Apply`](crate::Apply) for it.

mod affinity;
mod claim;
mod config_map;
mod container;
mod cron_job;
mod deployment;
mod job;
mod label_selector;
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
pub use deployment::{Deployment, DeploymentSpec, DeploymentStrategy};
pub use job::{JOB_NAME_LABEL, Job, JobSpec};
pub use label_selector::LabelSelector;
pub use pod::{Pod, PodSpec, PodTemplate, RestartPolicy};
pub use probe::{ExecAction, Probe, TcpSocketAction};
pub use service::{Service, ServicePort, ServiceSpec, ServiceType};
pub use volume::{ClaimSource, ConfigMapSource, EmptyDirSource, Volume, VolumeMount};

/// A port by number or by name (`IntOrString` in Kubernetes).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum PortRef {
    /// Port number.
    Number(u16),
    /// Name of a container's port.
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
