//! Objects that are about to enter a cache: without the fields that no view needs, and compressed.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{FieldMask, Object};

use super::CacheStore;
use crate::cache::cache_id::{CacheId, Content};
use crate::cache::compressor::Compressor;
use crate::cache::kept_fields;
use crate::cache::kind_cache::KindCache;

impl CacheStore {
    /// An object as a cache keeps it.
    pub(in crate::cache) fn compressed(
        &self,
        id: &CacheId,
        serial: u64,
        object: Object,
    ) -> Arc<Object> {
        let entry = self.lock().cache(id, serial).map(Entry::of);
        compress(entry, object)
    }

    /// The same, and the whole object if the cache leaves some of its fields out.
    pub(in crate::cache) fn compressed_and_whole(
        &self,
        id: &CacheId,
        serial: u64,
        object: Object,
    ) -> (Arc<Object>, Option<Object>) {
        let entry = self.lock().cache(id, serial).map(Entry::of);
        let leaves_out = entry.as_ref().is_some_and(|entry| !entry.fields.is_whole());
        let whole = leaves_out.then(|| object.clone());
        (compress(entry, object), whole)
    }

    /// An object of a response as the caches of its kind keep it. Several share one text, with the
    /// fields that any of them keeps.
    pub(in crate::cache) fn compressed_for_all(&self, kind: &Kind, object: Object) -> Arc<Object> {
        let entry = {
            let inner = self.lock();
            let takes = |id: &CacheId| {
                id.holds(kind, object.key.namespace()) && id.content == Content::Whole
            };
            let mut caches =
                inner.caches.iter().filter(|(id, _)| takes(id)).map(|(_, cache)| cache);
            let first = caches.next().map(Entry::of);
            first.map(|first| caches.fold(first, Entry::and))
        };
        compress(entry, object)
    }
}

/// How objects enter a cache.
struct Entry {
    fields: Arc<FieldMask>,
    compressor: Compressor,
}

impl Entry {
    fn of(cache: &KindCache) -> Self {
        Self { fields: cache.kept.entering(), compressor: cache.compressor.clone() }
    }

    /// The same for another cache, too.
    fn and(self, cache: &KindCache) -> Self {
        let fields = kept_fields::united([&self.fields, &cache.kept.entering()].into_iter());
        Self { fields, ..self }
    }
}

/// Without a cache nobody keeps the object. One that the host has written keeps all fields: the
/// host compares them with what it wrote.
fn compress(entry: Option<Entry>, mut object: Object) -> Arc<Object> {
    let Some(Entry { fields, compressor }) = entry else { return Arc::new(object) };
    if !fields.is_whole()
        && object.entries.is_empty()
        && let Ok(text) = fields.prune(&object.text.read())
    {
        object.text = text.into();
    }
    Arc::new(compressor.compress(object))
}
