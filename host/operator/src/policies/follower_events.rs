//! The listener that wakes the follower of policy records.

use std::sync::Arc;

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{Change, Listener};
use innkeeper_core::host_objects::POLICY_PREFIX;
use innkeeper_modules::module::NAMESPACE;
use tokio::sync::Notify;

use super::cache_observers::CacheObservers;
use crate::modules::event::{CONFIG_MAP, HOST_MODULE, SERVICE_ACCOUNT};

/// Listens to the caches of a replica's policies, and wakes the follower when a record or an
/// account may have changed. The follower then compares all of them, so it misses no change.
pub(super) struct FollowerEvents {
    /// The namespace of the host.
    pub(super) namespace: String,
    /// The other listener.
    pub(super) observers: CacheObservers,
    /// Wakes the follower. It has no reference to the caches, which refer to their listener.
    pub(super) wake: Arc<Notify>,
}

impl Listener for FollowerEvents {
    fn changed(&self, change: &Change) {
        if let Some(observer) = self.observers.get() {
            observer.changed(change);
        }
        let (kind, key) = (&*change.kind, &change.key);
        let is_record = *kind == *CONFIG_MAP
            && key.namespace() == self.namespace
            && key.name().starts_with(POLICY_PREFIX);
        if is_record || (*kind == *SERVICE_ACCOUNT && key.namespace() == NAMESPACE) {
            self.wake.notify_one();
        }
    }

    fn state_changed(&self, change: &StateChange) {
        if let Some(observer) = self.observers.get() {
            observer.state_changed(change);
        }
        let StateChange { module, kind, state, .. } = change;
        if **module == *HOST_MODULE {
            tracing::info!(%kind, ?state, "watch state of policy records changed");
            self.wake.notify_one();
        } else {
            tracing::info!(%module, %kind, ?state, "watch state of a policy changed");
        }
    }
}
