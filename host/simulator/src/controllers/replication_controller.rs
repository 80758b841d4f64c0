//! The ReplicationController controller: that of ReplicaSets for an older kind.

use crate::controllers::client::{Client, REPLICATION_CONTROLLERS};
use crate::controllers::replica_set::{Replicated, sync_as};
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::object_key::Key;

const REPLICATED: Replicated = Replicated {
    resource: REPLICATION_CONTROLLERS,
    client: Client::controller("system:serviceaccount:kube-system:replication-controller"),
    component: "replication-controller",
    workload: Workload::ReplicationControllers,
    counts_terminating: false,
};

/// Reconciles one ReplicationController.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    sync_as(cluster, key, &REPLICATED);
}
