//! Answers that contradict the caches, and what follows: all caches list again.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

use super::{CacheStore, Inner};
use crate::cache::cache_id::{CacheId, Content};
use crate::cache::change::Source;
use crate::cache::known_version::KnownVersion;
use crate::settings::{CONTRADICTION_PAUSE, CONTRADICTION_PERIOD};

impl Inner {
    /// What the caches know of an object.
    pub(super) fn known_versions(&self, kind: &Kind, key: &ObjectKey) -> Vec<KnownVersion> {
        let caches = self.caches.iter();
        caches
            .filter(|(id, _)| id.holds(kind, key.namespace()))
            .filter_map(|(_, cache)| cache.objects.known_version(key))
            .collect()
    }
}

impl CacheStore {
    /// What the caches know of an object before a GET of it. Nothing while a write of it is in
    /// flight, since its events wait.
    pub(in crate::cache) fn known_before_get(
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

    /// What the caches knew of an object before the writes of it that are in flight.
    pub(in crate::cache) fn known_before_write(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Vec<KnownVersion> {
        self.lock().writes.known(kind, key).to_vec()
    }

    /// Takes an answer that contradicts what the caches knew before the request. Without it the
    /// host would plan with the object that was there before the restore until the list has come.
    pub(in crate::cache) fn record_if_contradicted(
        &self,
        kind: &Kind,
        answer: &Arc<Object>,
        known: &[KnownVersion],
    ) {
        if known.iter().any(|known| known.is_contradicted_by(answer)) {
            let namespace = answer.key.namespace();
            // No write of this host: the listener has to learn of what the restore changed.
            self.update_all(kind, namespace, Source::List, &[Content::Whole], |objects, _| {
                objects.record_contradiction(answer.clone(), known)
            });
        }
    }

    /// Has all caches list again if an answer contradicts what they knew before the request. After
    /// an older backup of etcd was restored, an open watch gets no event until the versions have
    /// passed its own, and none of what the restore changed.
    pub(in crate::cache) fn list_if_contradicted(
        &self,
        kind: &Kind,
        answer: &Object,
        known: &[KnownVersion],
    ) {
        let Some(known) = known.iter().find(|known| known.is_contradicted_by(answer)) else {
            return;
        };
        let now = self.env.instant();
        let mut inner = self.lock();
        let within = |at: &_, period| now.saturating_duration_since(*at) < period;
        // Requests that were on the way meanwhile contradict, too.
        if inner.contradictions.values().any(|at| within(at, CONTRADICTION_PAUSE)) {
            return;
        }
        // A server behind an APIService may give out versions without an order.
        let is_repeated =
            inner.contradictions.get(kind).is_some_and(|at| within(at, CONTRADICTION_PERIOD));
        inner.contradictions.insert(kind.clone(), now);
        if is_repeated {
            return;
        }
        for cache in inner.caches.values_mut() {
            cache.must_list = true;
            cache.notify.notify_one();
        }
        drop(inner);
        // The key may hold the value of a Secret.
        tracing::warn!(
            %kind, answer = %answer.resource_version, ?known,
            "an answer is older than the cache, as after a restore of etcd: listing all kinds again",
        );
    }

    /// Whether the cache has to list again.
    pub(in crate::cache) fn must_list(&self, id: &CacheId, serial: u64) -> bool {
        self.lock().cache(id, serial).is_some_and(|cache| cache.must_list)
    }

    /// Notes that a watch begins at a version: the cache has all changes up to it.
    pub(in crate::cache) fn begin_watch(&self, id: &CacheId, serial: u64, version: u64) {
        if let Some(cache) = self.lock().cache_mut(id, serial) {
            cache.objects.begin_watch(version);
        }
    }
}
