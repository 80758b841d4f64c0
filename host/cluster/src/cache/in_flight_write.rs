//! A write in flight: [`InFlightWrite`].

use std::fmt;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;

use super::store::CacheStore;

/// A write in flight: see [`Caches::begin_write`](super::Caches::begin_write).
pub struct InFlightWrite {
    store: Arc<CacheStore>,
    kind: Arc<Kind>,
    key: ObjectKey,
}

impl InFlightWrite {
    pub(super) fn begin(store: &Arc<CacheStore>, kind: &Kind, key: &ObjectKey) -> Self {
        let kind = Arc::new(kind.clone());
        store.begin_write(&kind, key);
        Self { store: store.clone(), kind, key: key.clone() }
    }
}

impl fmt::Debug for InFlightWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InFlightWrite({} {})", self.kind, self.key)
    }
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        self.store.end_write(&self.kind, &self.key);
    }
}
