//! The strategy Recreate.

use crate::controllers::client;
use crate::controllers::client::PODS;
use crate::controllers::deployment::replica_sets::{
    new_replica_set, scale_old_replica_sets, set_replicas,
};
use crate::controllers::deployment::rollout::Rollout;
use crate::controllers::replica_set::has_ended;
use crate::state::cluster::Cluster;
use serde_json::Value;

/// The strategy Recreate: all old Pods are deleted before new ones are created.
pub(crate) fn recreate(cluster: &mut Cluster, rollout: &mut Rollout) {
    if scale_old_replica_sets(cluster, rollout, &vec![0; rollout.old.len()]) {
        return;
    }
    let running = |cluster: &Cluster, set: &Value| {
        client::controlled_by(cluster, set, &PODS).iter().any(|pod| !has_ended(pod))
    };
    if rollout.old.iter().any(|set| running(cluster, set)) {
        return;
    }
    new_replica_set(cluster, rollout);
    let Some(new) = rollout.new.clone() else { return };
    let wanted = rollout.bounds.replicas;
    if let Some(new) = set_replicas(cluster, rollout, &new, wanted) {
        rollout.new = Some(new);
    }
}
