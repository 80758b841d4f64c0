//! Removes Pods whose grace period is over, on a cluster without a kubelet.

use std::sync::Arc;

use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::object::{finalizers, meta};
use crate::types::object_key::Key;

/// Removes the Pods whose grace period is over.
pub(crate) fn expire_graces(cluster: &mut Cluster) {
    // With a kubelet, the kubelet ends its Pods.
    if cluster.controllers.workloads.has(Workload::Pods) {
        return;
    }
    let kind = (String::new(), "pods".to_owned());
    let Some(pods) = cluster.store.collection(&kind) else { return };
    let over: Vec<(Key, Arc<ManagedObject>)> = pods
        .objects
        .iter()
        .map(|(key, stored)| (key.clone(), stored.object()))
        .filter(|(_, pod)| {
            let ends = meta(pod, "deletionTimestamp").parse::<jiff::Timestamp>();
            ends.is_ok_and(|ends| ends <= cluster.now()) && finalizers(pod).is_empty()
        })
        .collect();
    for (key, pod) in over {
        cluster.remove(&kind, &key, &mut Arc::unwrap_or_clone(pod));
    }
}
