//! Deployments: one ReplicaSet for each template, and the way from one to the next.

use crate::controllers::client;
use crate::controllers::client::{DEPLOYMENTS, REPLICA_SETS};
use crate::controllers::deployment::progress::{pause_or_resume, sync_status};
use crate::controllers::deployment::recreate::recreate;
use crate::controllers::deployment::replica_sets::{clean_up_replica_sets, scale, update_revision};
use crate::controllers::deployment::rolling::roll;
use crate::controllers::deployment::rollout::{Rollout, is_complete, is_same, is_scaled, revision};
use crate::controllers::deployment::scaling::Bounds;
use crate::state::cluster::Cluster;
use crate::types::members::time;
use crate::types::object::is_terminating;
use crate::types::object_key::Key;

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(deployment) = client::get(cluster, &DEPLOYMENTS, key) else { return };
    let mut old = client::controlled_by(cluster, &deployment, &REPLICA_SETS);
    old.sort_by_key(|set| (time(&set["metadata"]["creationTimestamp"]), revision(set)));
    let template = &deployment["spec"]["template"];
    let new = old.iter().position(|set| is_same(&set["spec"]["template"], template));
    let new = new.map(|index| old.remove(index));
    let bounds = Bounds::read(&deployment["spec"]);
    let mut rollout = Rollout { deployment, bounds, new, old };
    if is_terminating(&rollout.deployment) {
        return sync_status(cluster, &mut rollout, false);
    }
    pause_or_resume(cluster, &mut rollout);
    let paused = rollout.deployment["spec"]["paused"] == true;
    if paused || is_scaled(&rollout) {
        if rollout.new.is_some() && !paused {
            update_revision(cluster, &mut rollout);
        }
        scale(cluster, &mut rollout);
        if paused {
            clean_up_replica_sets(cluster, &rollout);
        }
        return sync_status(cluster, &mut rollout, false);
    }
    if rollout.deployment["spec"]["strategy"]["type"] == "Recreate" {
        recreate(cluster, &mut rollout);
    } else {
        roll(cluster, &mut rollout);
    }
    if is_complete(&rollout) {
        clean_up_replica_sets(cluster, &rollout);
    }
    sync_status(cluster, &mut rollout, true);
}
