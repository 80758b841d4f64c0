//! Which controllers run, and which kinds each of them watches.

use crate::types::object_key::{Key, KindKey};

/// The controllers that run next to the API server.
#[derive(Clone, Copy, Debug)]
pub struct Controllers {
    /// The garbage collector: it deletes objects whose owners are gone, and removes its own
    /// finalizers.
    pub garbage_collector: bool,
    /// The controller of namespaces: it empties and finalizes those that are being deleted.
    pub namespaces: bool,
    /// The controllers of workloads, and the node that runs Pods.
    pub workloads: Workloads,
}

impl Controllers {
    /// All of them: a cluster with nodes.
    pub fn all() -> Self {
        Self { workloads: Workloads::all(), ..Self::default() }
    }
}

impl Default for Controllers {
    /// The controllers that need no nodes: no Pod is created or runs.
    fn default() -> Self {
        Self { garbage_collector: true, namespaces: true, workloads: Workloads::NONE }
    }
}

/// A controller of workloads, or a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// The CronJob controller.
    CronJobs,
    /// The Job controller.
    Jobs,
    /// The Deployment controller.
    Deployments,
    /// The StatefulSet controller.
    StatefulSets,
    /// The ReplicaSet controller.
    ReplicaSets,
    /// The volume binder and provisioner.
    Claims,
    /// A scheduler and a kubelet: Pods run, are ready, and end.
    Pods,
    /// `EndpointSlices` and Endpoints of Services.
    Endpoints,
    /// The Events of all of these.
    Events,
    /// The DaemonSet controller.
    DaemonSets,
    /// The ServiceAccount `default` of each namespace.
    ServiceAccounts,
    /// The ConfigMap `kube-root-ca.crt` of each namespace.
    RootCertificates,
    /// The controller of HorizontalPodAutoscalers.
    Autoscalers,
    /// The ReplicationController controller.
    ReplicationControllers,
}

impl Workload {
    const ALL: [Self; 14] = [
        Self::CronJobs,
        Self::Jobs,
        Self::Deployments,
        Self::StatefulSets,
        Self::ReplicaSets,
        Self::Claims,
        Self::Pods,
        Self::Endpoints,
        Self::Events,
        Self::DaemonSets,
        Self::ServiceAccounts,
        Self::RootCertificates,
        Self::Autoscalers,
        Self::ReplicationControllers,
    ];

    /// The controllers that reconcile objects of a kind under the objects' own names.
    pub(crate) fn of(kind: &KindKey) -> &'static [Self] {
        match (kind.0.as_str(), kind.1.as_str()) {
            ("apps", "deployments") => &[Self::Deployments],
            ("apps", "replicasets") => &[Self::ReplicaSets],
            ("", "replicationcontrollers") => &[Self::ReplicationControllers],
            ("apps", "statefulsets") => &[Self::StatefulSets],
            ("autoscaling", "horizontalpodautoscalers") => &[Self::Autoscalers],
            ("apps", "daemonsets") => &[Self::DaemonSets],
            ("", "namespaces") => &[Self::ServiceAccounts, Self::RootCertificates],
            ("batch", "jobs") => &[Self::Jobs],
            ("batch", "cronjobs") => &[Self::CronJobs],
            ("", "pods") => &[Self::Pods],
            ("", "persistentvolumeclaims" | "persistentvolumes") => &[Self::Claims],
            ("", "services") => &[Self::Endpoints],
            _ => &[],
        }
    }
}

/// A set of controllers of workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workloads(u16);

impl Workloads {
    /// None of them, as on a control plane without a controller manager and without nodes.
    pub const NONE: Self = Self(0);

    /// All of them.
    pub fn all() -> Self {
        Workload::ALL.into_iter().fold(Self::NONE, Self::with)
    }

    /// These and another one.
    #[must_use]
    pub fn with(self, workload: Workload) -> Self {
        Self(self.0 | (1 << workload as u16))
    }

    /// These without one.
    #[must_use]
    pub fn without(self, workload: Workload) -> Self {
        Self(self.0 & !(1 << workload as u16))
    }

    /// Whether a controller runs.
    pub fn has(self, workload: Workload) -> bool {
        self.0 & (1 << workload as u16) != 0
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// One object in the queue of one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Work {
    pub(crate) workload: Workload,
    pub(crate) key: Key,
}
