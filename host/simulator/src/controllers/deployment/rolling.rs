//! The strategy RollingUpdate.

use crate::apply::managed_object::ManagedObject;
use crate::controllers::deployment::replica_sets::{
    new_replica_set, scale_old_replica_sets, set_replicas,
};
use crate::controllers::deployment::rollout::Rollout;
use crate::controllers::deployment::scaling::Set;
use crate::state::cluster::Cluster;
use crate::types::members::number;
use std::sync::Arc;

/// The rolling update.
pub(crate) fn roll(cluster: &mut Cluster, rollout: &mut Rollout) {
    new_replica_set(cluster, rollout);
    let Some(new) = rollout.new.clone() else { return };
    let had = number(&new["spec"]["replicas"]);
    let wanted = if had > rollout.bounds.replicas {
        rollout.bounds.replicas
    } else {
        rollout.bounds.new_set(had, rollout.wanted())
    };
    if let Some(new) = set_replicas(cluster, rollout, &new, wanted) {
        rollout.new = Some(new);
        return;
    }
    let set = |set: &Arc<ManagedObject>| Set {
        wanted: number(&set["spec"]["replicas"]),
        available: number(&set["status"]["availableReplicas"]),
    };
    let old: Vec<Set> = rollout.old.iter().map(set).collect();
    let wanted = rollout.bounds.old_sets(&old, &set(&new));
    scale_old_replica_sets(cluster, rollout, &wanted);
}
