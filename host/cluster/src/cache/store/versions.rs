//! Answers that contradict the caches, and what follows: all caches list again.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use tokio::time::Instant;

use super::{CacheStore, Contradictions, Inner};
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

    /// Takes the answer to a write if it contradicts what the caches knew before the write.
    pub(in crate::cache) fn take_contradicting_write(&self, kind: &Kind, answer: &Arc<Object>) {
        let known = self.lock().writes.known(kind, &answer.key).to_vec();
        if let Some(source) = self.list_if_contradicted(kind, answer, &known) {
            self.record_contradiction(kind, answer, &known, source);
        }
    }

    /// Takes the answer to a GET if it contradicts what the caches knew before the request.
    pub(in crate::cache) fn take_contradicting_get(
        &self,
        kind: &Kind,
        answer: &Arc<Object>,
        known: &[KnownVersion],
    ) {
        if self.list_if_contradicted(kind, answer, known).is_some() {
            self.record_contradiction(kind, answer, known, Source::List);
        }
    }

    /// Has all caches list again if an answer contradicts what they knew before the request; gives
    /// the source of the change that the answer shows, or `None` if it contradicts nothing. After
    /// an older backup of etcd was restored, an open watch gets no event until the versions have
    /// passed its own, and none of what the restore changed.
    ///
    /// The source is [`Source::List`] also for the answer to a write: the object has what the
    /// restore changed, too, so that the writer has to run again. But if answers contradict a list
    /// that has ended since the first of them, the versions of the API server have no order, as
    /// behind some `APIService`: there a write must not wake its writer each time.
    fn list_if_contradicted(
        &self,
        kind: &Kind,
        answer: &Object,
        known: &[KnownVersion],
    ) -> Option<Source> {
        let contradicted = || known.iter().filter(|known| known.is_contradicted_by(answer));
        contradicted().next()?;
        let now = self.env.instant();
        let mut inner = self.lock();
        let within = |at: &Instant, period| now.saturating_duration_since(*at) < period;
        let Contradictions { of_kinds, listed } = &mut inner.contradictions;
        let last = of_kinds.insert(kind.clone(), now);
        let is_first = last.is_none_or(|last| !within(&last, CONTRADICTION_PERIOD));
        let is_after_lists = listed.is_some_and(|at| within(&at, CONTRADICTION_PAUSE));
        let mut has_order = false;
        for (id, cache) in &mut inner.caches {
            if id.holds(kind, answer.key.namespace()) {
                cache.listed_since_contradiction &= !is_first;
                has_order |= !cache.listed_since_contradiction;
            }
        }
        let source = if has_order { Source::List } else { Source::Write };
        // A list that runs shows what is there now, and requests that were on the way before the
        // last one contradict, too.
        let known = contradicted().find(|known| !known.is_during_list());
        let Some(known) = known.filter(|_| is_first && !is_after_lists) else {
            return Some(source);
        };
        inner.contradictions.listed = Some(now);
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
        Some(source)
    }

    /// Takes the object of an answer that contradicts what the caches knew before the request. If
    /// they waited for the list, the host would plan meanwhile with the object from before the
    /// restore.
    fn record_contradiction(
        &self,
        kind: &Kind,
        answer: &Arc<Object>,
        known: &[KnownVersion],
        source: Source,
    ) {
        let namespace = answer.key.namespace();
        self.update_all(kind, namespace, source, &[Content::Whole], |objects, _| {
            objects.record_contradiction(answer.clone(), known)
        });
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
