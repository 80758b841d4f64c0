//! Runs the controllers: lets virtual time pass and gives each controller its queue.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::controllers::{
    cron_job, custom_resource_definition, daemon_set, deployment, endpoints, garbage_collector,
    horizontal_pod_autoscaler, job, kubelet, namespace, persistent_volume_claim, pod_grace_period,
    replica_set, replication_controller, root_ca_publisher, service_account, stateful_set,
};
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::{Work, Workload};
use crate::state::work_queue::TOGETHER_MAX;

/// The maximum number of batches in one call; the rest waits for the next call.
const ROUNDS_MAX: usize = 1000;

/// Advances the virtual clock: controllers run when their timers are due, watches get bookmarks and
/// end.
pub(crate) fn advance(cluster: &mut Cluster, by: SignedDuration) {
    settle(cluster);
    let end = later(cluster.now(), by);
    while let Some(next) = cluster.work_queue.next().filter(|next| *next <= end) {
        cluster.set_now(next.max(cluster.now()));
        settle(cluster);
    }
    cluster.set_now(end);
    cluster.serve_watches();
    cluster.compact_when_due();
    pod_grace_period::expire_graces(cluster);
    settle(cluster);
}

/// Runs the controllers until there is nothing to do.
pub(crate) fn settle(cluster: &mut Cluster) {
    let (mut rounds, mut most) = (0, 0);
    while rounds < ROUNDS_MAX * (1 + most / TOGETHER_MAX) {
        rounds += 1;
        let mut worked = custom_resource_definition::finish_deletions(cluster);
        if cluster.controllers.namespaces {
            worked |= namespace::empty_namespaces(cluster);
        }
        if cluster.controllers.garbage_collector {
            worked |= garbage_collector::collect(cluster);
        }
        worked |= work_on_workloads(cluster);
        most = most.max(cluster.work_queue.waiting());
        if !worked {
            return;
        }
    }
}

/// Gives each controller its due work once. Returns whether there was any.
pub(crate) fn work_on_workloads(cluster: &mut Cluster) -> bool {
    if cluster.controllers.workloads.is_none() {
        return false;
    }
    let due: BTreeSet<Work> = cluster.work_queue.take(cluster.now());
    let any = !due.is_empty();
    for Work { workload, key } in due {
        match workload {
            Workload::Deployments => deployment::sync(cluster, &key),
            Workload::ReplicaSets => replica_set::sync(cluster, &key),
            Workload::ReplicationControllers => replication_controller::sync(cluster, &key),
            Workload::StatefulSets => stateful_set::sync(cluster, &key),
            Workload::Jobs => job::sync(cluster, &key),
            Workload::CronJobs => cron_job::sync(cluster, &key),
            Workload::Claims => persistent_volume_claim::sync(cluster, &key),
            Workload::Pods => kubelet::sync(cluster, &key),
            Workload::Endpoints => endpoints::sync(cluster, &key),
            Workload::DaemonSets => daemon_set::sync(cluster, &key),
            Workload::ServiceAccounts => service_account::sync(cluster, &key),
            Workload::RootCertificates => root_ca_publisher::sync(cluster, &key),
            Workload::Autoscalers => horizontal_pod_autoscaler::sync(cluster, &key),
            Workload::Events => {}
        }
    }
    any
}
