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
//! a struct of your own and implement [`Apply`](crate::Apply) for it with
//! [`kind!`](crate::kind), or use [`Raw`](crate::Raw).

#[macro_use]
mod setters;

mod affinity;
mod claim;
mod config_map;
mod container;
mod cron_job;
mod deployment;
mod env;
mod job;
mod label_selector;
mod pod;
mod pod_spec;
mod pod_template;
mod probe;
mod resources;
mod security_context;
mod service;
mod toleration;
mod volume;

pub use affinity::{Affinity, PodAffinity, PodAffinityTerm};
pub use claim::{AccessMode, ClaimResources, ClaimSpec, PersistentVolumeClaim};
pub use config_map::ConfigMap;
pub use container::{Container, ContainerPort, ImagePullPolicy, Protocol};
pub use cron_job::{ConcurrencyPolicy, CronJob, CronJobSpec, JobTemplate};
pub use deployment::{Deployment, DeploymentSpec, DeploymentStrategy};
pub use env::{EnvFrom, EnvFromRef, EnvSource, EnvVar, FieldRef, KeyRef};
pub use job::{JOB_NAME_LABEL, Job, JobSpec};
pub use label_selector::{LabelOperator, LabelRequirement, LabelSelector};
pub use pod::Pod;
pub use pod_spec::{ImagePullSecret, PodSpec, RestartPolicy};
pub use pod_template::PodTemplate;
pub use probe::{ExecAction, GrpcAction, HttpGetAction, Probe, TcpSocketAction};
pub use resources::Resources;
pub use security_context::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};
pub use service::{Service, ServicePort, ServiceSpec, ServiceType};
pub use toleration::Toleration;
pub use volume::{
    ClaimSource, ConfigMapSource, EmptyDirSource, HostPathSource, SecretSource, Volume, VolumeMount,
};

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
