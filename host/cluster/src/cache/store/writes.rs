//! Changes of the caches by writes and lookups.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use tokio::time::Instant;

use super::CacheStore;
use crate::cache::cache_id::Content;
use crate::cache::change::Source;
use crate::cache::objects::{Objects, Transition};

impl CacheStore {
    /// Changes each cache of a kind that covers a namespace and has one of these contents.
    pub(in crate::cache) fn update_all(
        &self,
        kind: &Kind,
        namespace: &str,
        source: Source,
        contents: &[Content],
        mut change: impl FnMut(&mut Objects, Instant) -> Option<Transition>,
    ) {
        let now = self.env.instant();
        self.update(|inner, notices| {
            for (id, cache) in &mut inner.caches {
                if id.holds(kind, namespace) && contents.contains(&id.content) {
                    cache.apply(id, source, notices, |objects| change(objects, now));
                }
            }
        });
    }

    /// Whether a cache has a mark that the state of an object is unknown.
    pub(in crate::cache) fn is_unknown(&self, kind: &Kind, key: &ObjectKey) -> bool {
        let inner = self.lock();
        let mut caches = inner.caches.iter();
        caches.any(|(id, cache)| {
            id.holds(kind, key.namespace()) && cache.objects.live().is_unknown(key)
        })
    }

    /// Begins a write of an object: watch events of the object wait for its end.
    pub(in crate::cache) fn begin_write(&self, kind: &Arc<Kind>, key: &ObjectKey) {
        let mut inner = self.lock();
        let known = inner.known_versions(kind, key);
        inner.writes.begin(kind, key, known);
    }

    /// Ends a write of an object, and applies the watch events that waited for it.
    pub(in crate::cache) fn end_write(&self, kind: &Arc<Kind>, key: &ObjectKey) {
        let now = self.env.instant();
        self.update(|inner, notices| {
            for parked in inner.writes.end(kind, key) {
                if let Some(cache) = inner.cache_mut(&parked.id, parked.serial) {
                    let event = parked.event;
                    cache.apply(&parked.id, Source::Watch, notices, |objects| {
                        event.apply_to(objects, now)
                    });
                }
            }
        });
    }

    /// Makes all caches of a group compare their kind with discovery, also the synced ones:
    /// another definition may have replaced the one of the kind.
    pub(in crate::cache) fn verify_group(&self, group: &str) {
        for (id, cache) in &self.lock().caches {
            if id.kind.group() == group {
                cache.notify.notify_one();
            }
        }
    }
}
