//! Who else listens to the caches of a replica's policies: the audit, while this replica leads.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use innkeeper_cluster::Listener;

/// Who else listens to the caches of a replica's policies. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct CacheObservers(Arc<Mutex<Option<Weak<dyn Listener>>>>);

impl CacheObservers {
    /// Makes `listener` the only one, for as long as it lives. It gets what changes from now on.
    pub(super) fn set<L: Listener + 'static>(&self, listener: &Arc<L>) {
        let listener: Weak<L> = Arc::downgrade(listener);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// The listener, if there is one.
    pub(super) fn get(&self) -> Option<Arc<dyn Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }
}
