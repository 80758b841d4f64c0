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
mod cluster_role;
mod cluster_role_binding;
mod config_map;
mod container;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod deployment;
mod env;
mod fields;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod label_selector;
mod namespace;
mod network_policy;
mod pod;
mod pod_disruption_budget;
mod pod_spec;
mod pod_template;
mod policy_rule;
mod probe;
mod replica_set;
mod resources;
mod role;
mod role_binding;
mod secret;
mod security_context;
mod service;
mod service_account;
mod stateful_set;
mod subject;
mod toleration;
mod volume;

pub use affinity::{Affinity, PodAffinity, PodAffinityTerm};
pub use claim::{AccessMode, ClaimResources, ClaimSpec, PersistentVolumeClaim};
pub use cluster_role::ClusterRole;
pub use cluster_role_binding::ClusterRoleBinding;
pub use config_map::ConfigMap;
pub use container::{Container, ContainerPort, ImagePullPolicy, Protocol};
pub use controller_revision::ControllerRevision;
pub use cron_job::{ConcurrencyPolicy, CronJob, CronJobSpec, JobTemplate};
pub use daemon_set::{DaemonSet, DaemonSetSpec};
pub use deployment::{Deployment, DeploymentSpec, DeploymentStrategy};
pub use env::{EnvFrom, EnvFromRef, EnvSource, EnvVar, FieldRef, KeyRef};
pub use horizontal_pod_autoscaler::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, ResourceMetric, ResourceTarget,
    ScaleTarget, UtilizationTarget,
};
pub use ingress::{
    Ingress, IngressBackend, IngressPath, IngressPaths, IngressPort, IngressRule, IngressService,
    IngressSpec, IngressTls,
};
pub use job::{JOB_NAME_LABEL, Job, JobSpec};
pub use label_selector::{LabelRequirement, LabelSelector};
pub use namespace::Namespace;
pub use network_policy::{
    EgressPolicyRule, IngressPolicyRule, IpBlock, NetworkPolicy, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicyRule, NetworkPolicySpec,
};
pub use pod::Pod;
pub use pod_disruption_budget::{Amount, PodDisruptionBudget, PodDisruptionBudgetSpec};
pub use pod_spec::{PodSpec, RestartPolicy};
pub use pod_template::PodTemplate;
pub use policy_rule::PolicyRule;
pub use probe::{ExecAction, GrpcAction, HttpGetAction, Probe, TcpSocketAction};
pub use replica_set::{ReplicaSet, ReplicaSetSpec};
pub use resources::Resources;
pub use role::Role;
pub use role_binding::RoleBinding;
pub use secret::Secret;
pub use security_context::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext};
pub use service::{Service, ServicePort, ServiceSpec, ServiceType};
pub use service_account::ServiceAccount;
pub use stateful_set::{StatefulSet, StatefulSetSpec};
pub use subject::{RoleRef, Subject};
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
