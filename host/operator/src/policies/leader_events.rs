//! The listener that wakes the leader of policies.

use std::sync::Arc;

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{Change, Listener};
use innkeeper_core::host_objects::POLICY_PREFIX;
use tokio::sync::Notify;

use super::replica_report::LEASE_PREFIX;
use crate::modules::event::MODULE;

/// Listens to the caches of the leader of policies, and wakes it. The leader then compares all
/// objects, so it misses no change.
pub(super) struct LeaderEvents {
    /// Wakes the leader. It has no reference to the caches, which refer to their listener.
    pub(super) wake: Arc<Notify>,
}

impl Listener for LeaderEvents {
    fn changed(&self, change: &Change) {
        let name = change.key.name();
        let is_of_policies = [POLICY_PREFIX, LEASE_PREFIX].iter().any(|one| name.starts_with(one));
        if is_of_policies || *change.kind == *MODULE {
            self.wake.notify_one();
        }
    }

    fn state_changed(&self, change: &StateChange) {
        let StateChange { kind, state, .. } = change;
        tracing::info!(%kind, ?state, "watch state of the leader of policies changed");
        self.wake.notify_one();
    }
}
