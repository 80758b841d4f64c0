//! What reacts to writes: at once, as admission and registries do, or when time passes, as
//! controllers do.

mod address;
mod claim;
mod client;
mod cron_job;
mod definition;
mod deployment;
mod endpoints;
mod event;
mod follow;
mod garbage;
mod job;
mod labels;
mod lifecycle;
mod namespace;
mod owner;
mod pod;
mod pod_script;
mod pod_status;
mod replica_set;
mod rollout;
mod schedule;
mod stateful_set;
mod volume;
mod workload;

pub use pod_script::{PodRule, PodScript};
pub use workload::{Workload, Workloads};

pub(crate) use follow::Following;
pub(crate) use pod::PodLives;

/// What runs besides the API server.
#[derive(Clone, Copy, Debug)]
pub struct Controllers {
    /// Objects whose owners are gone are deleted, and what an owner blocks or orphans is let go.
    pub garbage_collector: bool,
    /// Namespaces that are being deleted are emptied and finalised.
    pub namespaces: bool,
    /// What makes Pods and lets them live.
    pub workloads: Workloads,
}

impl Controllers {
    /// All of them: a cluster with nodes.
    pub fn all() -> Self {
        Self { workloads: Workloads::all(), ..Self::default() }
    }
}

impl Default for Controllers {
    /// Those that work without nodes: no Pod is made and none runs.
    fn default() -> Self {
        Self { garbage_collector: true, namespaces: true, workloads: Workloads::NONE }
    }
}
