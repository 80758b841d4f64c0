//! Changes of a cache by its watch.

use std::sync::Arc;

use innkeeper_core::{Object, ObjectKey};
use kube::api::ObjectMeta;

use super::CacheStore;
use crate::Mismatch;
use crate::cache::cache_id::CacheId;
use crate::cache::change::Source;
use crate::cache::kind_cache::{KindCache, Phase};
use crate::cache::member::Admission;
use crate::cache::notices::Notice;
use crate::cache::objects::{Objects, Transition};
use crate::cache::watch_event::WatchEvent;

impl CacheStore {
    /// Takes an event of a watch. While a write of its object is in flight, the event waits, with
    /// the whole object if there is one: views that join meanwhile may need other fields.
    pub(in crate::cache) fn apply_watch_event(
        &self,
        id: &CacheId,
        serial: u64,
        event: WatchEvent,
        whole: Option<Object>,
    ) {
        let now = self.env.instant();
        self.update(|inner, notices| {
            if inner.cache(id, serial).is_none() {
                return;
            }
            let event = match whole {
                Some(whole) if inner.writes.is_in_flight(&id.kind, &whole.key) => {
                    WatchEvent::Applied(Arc::new(whole))
                }
                _ => event,
            };
            let Some(event) = inner.writes.park(id, serial, event) else { return };
            if let Some(cache) = inner.cache_mut(id, serial) {
                cache.apply(id, Source::Watch, notices, |objects| event.apply_to(objects, now));
            }
        });
    }

    /// The cached object, if the API server sends a version that a write response has brought
    /// already: the text need not be decoded again.
    pub(in crate::cache) fn cached(
        &self,
        id: &CacheId,
        serial: u64,
        metadata: &ObjectMeta,
    ) -> Option<Arc<Object>> {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, metadata.name.as_deref()?);
        let (uid, version) = (metadata.uid.as_deref()?, metadata.resource_version.as_deref()?);
        let inner = self.lock();
        inner.cache(id, serial)?.objects.same(&key, uid, version).cloned()
    }

    /// Takes the beginning of a list. Events that wait for a write come from before it.
    pub(in crate::cache) fn begin_list(&self, id: &CacheId, serial: u64) {
        self.update(|inner, _| {
            if let Some(cache) = inner.cache_mut(id, serial) {
                cache.objects.begin_relist();
                cache.begin_list_of_fields();
                cache.must_list = false;
                inner.writes.drop_parked(id, serial);
            }
        });
    }

    /// Lets objects enter without the fields that no view needs any more.
    pub(in crate::cache) fn narrow_fields(&self, id: &CacheId, serial: u64) {
        if let Some(cache) = self.lock().cache_mut(id, serial) {
            cache.narrow_fields();
        }
    }

    /// Whether a view waits for a list of fields that the objects lack, and none of the watch runs.
    pub(in crate::cache) fn lacks_fields(&self, id: &CacheId, serial: u64) -> bool {
        self.lock().cache(id, serial).is_some_and(KindCache::lacks_fields)
    }

    /// Begins a list of fields; false if no view waits for one.
    pub(in crate::cache) fn begin_field_list(&self, id: &CacheId, serial: u64) -> bool {
        let mut inner = self.lock();
        let cache = inner.cache_mut(id, serial).filter(|cache| cache.lacks_fields());
        let Some(cache) = cache else { return false };
        cache.begin_list_of_fields();
        cache.objects.begin_field_list();
        true
    }

    /// Takes an object from a list of fields.
    pub(in crate::cache) fn apply_fields(&self, id: &CacheId, serial: u64, object: Arc<Object>) {
        if let Some(cache) = self.lock().cache_mut(id, serial) {
            cache.objects.apply_fields(object);
        }
    }

    /// Takes the end of a list of fields. False if a cached object still lacks them: the event of
    /// its change or deletion may be on its way.
    pub(in crate::cache) fn end_field_list(&self, id: &CacheId, serial: u64) -> bool {
        let ended = self.update_cache(id, serial, |cache, notices| {
            let has_all = cache.objects.have_all_fields();
            if has_all {
                cache.end_list_of_fields();
                cache.notice_states(id, notices);
            }
            has_all
        });
        ended.unwrap_or(true)
    }

    /// Ends a list of fields before it has shown all objects. Nothing if it has ended.
    pub(in crate::cache) fn stop_field_list(&self, id: &CacheId, serial: u64) {
        if let Some(cache) = self.lock().cache_mut(id, serial) {
            cache.stop_list_of_fields();
        }
    }

    /// Takes the failure of a list of fields: views that wait for it say why.
    pub(in crate::cache) fn set_field_list_failing(
        &self,
        id: &CacheId,
        serial: u64,
        message: String,
    ) {
        self.update_cache(id, serial, |cache, notices| {
            cache.list_failure = Some(message);
            cache.notice_states(id, notices);
        });
    }

    /// Takes a change from a list, or from the lookup of an unconfirmed object.
    pub(in crate::cache) fn apply_listed(
        &self,
        id: &CacheId,
        serial: u64,
        change: impl FnOnce(&mut Objects) -> Option<Transition>,
    ) {
        self.update_cache(id, serial, |cache, notices| {
            cache.apply(id, Source::List, notices, change);
        });
    }

    /// Takes the end of a list: members can read the cache, and its holder has proved its right.
    pub(in crate::cache) fn end_list(&self, id: &CacheId, serial: u64) {
        let now = self.env.instant();
        self.update_cache(id, serial, |cache, notices| {
            let is_first = !cache.objects.is_complete();
            let transitions = cache.objects.end_relist(now).into_iter();
            if !is_first {
                notices.extend(transitions.map(|one| Notice::changed(id, one, Source::List)));
            }
            cache.end_list_of_fields();
            cache.phase = Phase::Synced;
            cache.listed_since_contradiction = true;
            if let Some(identity) = &cache.holder
                && let Some(member) = cache.members.get_mut(identity)
            {
                member.admission = Admission::Admitted;
                member.proven = now;
            }
            cache.notice_states(id, notices);
        });
    }

    /// Removes the objects of a kind that the API server does not serve.
    pub(in crate::cache) fn set_not_served(&self, id: &CacheId, serial: u64) {
        self.clear(id, serial, Phase::NotServed);
    }

    /// Removes the objects of a kind that the API server serves otherwise than it is declared.
    pub(in crate::cache) fn set_mismatched(&self, id: &CacheId, serial: u64, mismatch: Mismatch) {
        self.clear(id, serial, Phase::Mismatched(mismatch));
    }

    fn clear(&self, id: &CacheId, serial: u64, phase: Phase) {
        self.update_cache(id, serial, |cache, notices| {
            let is_complete = cache.objects.is_complete();
            let transitions = cache.objects.clear().into_iter();
            cache.kept.clear();
            if is_complete {
                notices.extend(transitions.map(|one| Notice::changed(id, one, Source::Watch)));
            }
            cache.phase = phase;
            cache.notice_states(id, notices);
        });
    }

    /// Takes a failure of a list or watch. A cache that has synced stays synced for the views whose
    /// fields it has.
    pub(in crate::cache) fn set_failing(&self, id: &CacheId, serial: u64, message: String) {
        self.update_cache(id, serial, |cache, notices| {
            if cache.phase != Phase::Synced {
                cache.phase = Phase::Failing(message);
            } else if cache.has_waiting_view() {
                cache.list_failure = Some(message);
            }
            cache.notice_states(id, notices);
        });
    }

    /// Whether the cache has synced.
    pub(in crate::cache) fn is_synced(&self, id: &CacheId, serial: u64) -> bool {
        self.lock().cache(id, serial).is_some_and(|cache| cache.phase == Phase::Synced)
    }

    /// The objects that only a write response confirms.
    pub(in crate::cache) fn unconfirmed(&self, id: &CacheId, serial: u64) -> Vec<Arc<Object>> {
        let inner = self.lock();
        inner.cache(id, serial).map(|cache| cache.objects.unconfirmed()).unwrap_or_default()
    }
}
