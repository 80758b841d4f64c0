//! The compression of objects that are about to enter a cache.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::Object;

use super::CacheStore;
use crate::cache::cache_id::{CacheId, Content};
use crate::cache::compressor::Compressor;

impl CacheStore {
    /// An object as a cache keeps it.
    pub(in crate::cache) fn compressed(
        &self,
        id: &CacheId,
        serial: u64,
        object: Object,
    ) -> Arc<Object> {
        let compressor = self.lock().cache(id, serial).map(|cache| cache.compressor.clone());
        compress(compressor, object)
    }

    /// An object of a response as the caches of its kind keep it. Several share one text.
    pub(in crate::cache) fn compressed_for_all(&self, kind: &Kind, object: Object) -> Arc<Object> {
        let compressor = {
            let inner = self.lock();
            let mut caches = inner.caches.iter();
            caches
                .find(|(id, _)| {
                    id.holds(kind, object.key.namespace()) && id.content == Content::Whole
                })
                .map(|(_, cache)| cache.compressor.clone())
        };
        compress(compressor, object)
    }
}

/// Without a cache nobody keeps the object.
fn compress(compressor: Option<Compressor>, object: Object) -> Arc<Object> {
    match compressor {
        Some(compressor) => Arc::new(compressor.compress(object)),
        None => Arc::new(object),
    }
}
