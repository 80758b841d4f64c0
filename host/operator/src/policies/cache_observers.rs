//! The second listener of the caches of a replica's policies: the audit, while this replica leads.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use innkeeper_cluster::Listener;

/// The second listener of the caches of a replica's policies. Clones share it.
#[derive(Clone, Default)]
pub(super) struct CacheObservers(Arc<Mutex<Option<Weak<dyn Listener>>>>);

impl CacheObservers {
    /// Replaces the listener by this one, which gets the changes from now on, as long as it lives.
    pub(super) fn set<L: Listener + 'static>(&self, listener: &Arc<L>) {
        let listener: Weak<L> = Arc::downgrade(listener);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// The listener, if there is one.
    pub(super) fn get(&self) -> Option<Arc<dyn Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }
}
