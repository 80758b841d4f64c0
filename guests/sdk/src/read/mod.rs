//! Types for objects that guests read, with the fields that reconcile logic commonly needs. Each is
//! also a primary for a guest that decorates objects of the kind. For other kinds and fields, use
//! [`Raw`](crate::Raw), or write a struct of your own and implement
//! [`Resource`](crate::Resource) for it with [`kind!`](crate::kind).
//!
//! A change of fields that a type does not have does not run the guest: a struct with few fields
//! saves runs.
//!
//! ```
//! use innkeeper_sdk::serde_json::{self, json};
//! use innkeeper_sdk::read::{Namespace, StatefulSet};
//!
//! let team: Namespace = serde_json::from_value(json!({ "status": { "phase": "Active" } })).unwrap();
//! assert!(!team.is_terminating());
//! let db: StatefulSet = serde_json::from_value(json!({ "spec": { "replicas": 3 } })).unwrap();
//! assert_eq!(db.spec.replicas, Some(3));
//! ```

mod claim;
mod config_map;
mod cron_job;
mod custom;
mod daemon_set;
mod deployment;
mod ingress;
mod job;
mod namespace;
mod node;
mod pod;
mod replica_set;
mod secret;
mod service;
mod service_account;
mod stateful_set;

pub use claim::{ClaimStatus, PersistentVolumeClaim};
pub use config_map::ConfigMap;
pub use cron_job::{CronJob, CronJobStatus};
pub use custom::{Custom, CustomStatus};
pub use daemon_set::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
pub use deployment::{
    Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy, PodTemplate,
};
pub use ingress::{Ingress, IngressStatus, LoadBalancer, LoadBalancerAddress};
pub use job::{Job, JobStatus};
pub use namespace::{Namespace, NamespaceStatus};
pub use node::{Node, NodeSpec, NodeStatus};
pub use pod::{
    ContainerState, ContainerStatus, Pod, PodContainer, PodPhase, PodSpec, PodStatus, Terminated,
};
pub use replica_set::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
pub use secret::Secret;
pub use service::{Service, ServiceSpec};
pub use service_account::ServiceAccount;
pub use stateful_set::{ClaimTemplate, StatefulSet, StatefulSetSpec, StatefulSetStatus};

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
