//! Versions that went back: an answer shows an object older than the caches know it.

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

use super::{CacheStore, Inner};
use crate::cache::cache_id::CacheId;
use crate::cache::known_version::KnownVersion;
use crate::settings::VERSIONS_WENT_BACK_PERIOD;

impl Inner {
    /// What the caches know of an object.
    pub(super) fn known_versions(&self, kind: &Kind, key: &ObjectKey) -> Vec<KnownVersion> {
        let caches = self.caches.iter();
        caches
            .filter(|(id, _)| *id.kind == *kind && id.covers(key.namespace()))
            .filter_map(|(_, cache)| cache.objects.known_version(key))
            .collect()
    }
}

impl CacheStore {
    /// What the caches know of an object before a GET of it. Nothing while a write of it is in
    /// flight, since its events wait.
    pub(in crate::cache) fn known_versions(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Vec<KnownVersion> {
        let inner = self.lock();
        if inner.writes.is_in_flight(kind, key) {
            return Vec::new();
        }
        inner.known_versions(kind, key)
    }

    /// Compares the object of a write response with what the caches knew before the write.
    pub(in crate::cache) fn compare_written(&self, kind: &Kind, object: &Object) {
        let known = self.lock().writes.known(kind, &object.key).to_vec();
        self.compare(kind, object, &known);
    }

    /// Compares the object of an answer with what the caches knew before the request. If the
    /// versions went back, all caches list again: a watch from before gets no event until the
    /// versions have passed its own, and none of what the restore changed.
    pub(in crate::cache) fn compare(&self, kind: &Kind, answer: &Object, known: &[KnownVersion]) {
        if !known.iter().any(|one| one.is_contradicted_by(answer)) {
            return;
        }
        let now = self.env.instant();
        let mut inner = self.lock();
        // A server behind an APIService may give out versions without an order.
        let is_recent = |at| now.saturating_duration_since(at) < VERSIONS_WENT_BACK_PERIOD;
        if inner.versions_went_back.is_some_and(is_recent) {
            return;
        }
        inner.versions_went_back = Some(now);
        for cache in inner.caches.values_mut() {
            cache.must_list = true;
            cache.notify.notify_one();
        }
        drop(inner);
        tracing::warn!(
            %kind, key = %answer.key, version = %answer.resource_version,
            "versions of the API server went back: listing all kinds again",
        );
    }

    /// Whether the cache has to list again.
    pub(in crate::cache) fn must_list(&self, id: &CacheId, serial: u64) -> bool {
        self.lock().cache(id, serial).is_some_and(|cache| cache.must_list)
    }
}
