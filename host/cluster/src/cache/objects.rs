//! The objects of one cache, and the rules by which a change enters.
//!
//! - By version: of one uid, the cache drops an object that is not newer than the cached one.
//!   The versions of a cluster go back when an older backup of etcd is restored. So a relist
//!   replaces what the cache had before it, whatever the versions are, and so does an answer to a
//!   request that contradicts it ([`KnownVersion`]).
//! - By uid: a deletion removes the object with its uid, and no other one of that name.
//! - By list of fields: an object gets fields that it lacks, if it has the listed version.
//! - By relist: an object that a relist does not show is removed, unless a write response that came
//!   after the relist had begun confirms it.
//!
//! Nothing here waits, reads a clock, or sends a request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::{Object, ObjectKey};
use tokio::time::Instant;

use super::known_version::KnownVersion;
use super::live_objects::LiveObjects;
use crate::settings::TOMBSTONE_TTL;

/// The change of one object in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) before: Option<Arc<Object>>,
    pub(super) after: Option<Arc<Object>>,
}

/// A deleted uid.
#[derive(Clone, Copy, Debug)]
struct Tombstone {
    /// When the uid was deleted, on the clock of timers.
    at: Instant,
    /// The relist during or after which the uid was deleted.
    relist: u64,
    /// A watch event or a relist has confirmed the deletion.
    confirmed: bool,
}

/// The objects of one cache.
#[derive(Debug, Default)]
pub(super) struct Objects {
    live: LiveObjects,
    /// The number of relists that have begun.
    relist: u64,
    /// The uids that the running relist has shown.
    listed: Option<BTreeSet<Box<str>>>,
    /// The uids of the objects that may lack fields which a list of fields is to show: they were
    /// cached before it began, and have not changed since.
    lacking_fields: BTreeSet<Box<str>>,
    /// The objects that a write response or a lookup confirms and no event yet, each with the
    /// relist during or after which the confirmation came.
    confirmed_at: BTreeMap<ObjectKey, u64>,
    /// The objects of `confirmed_at` that the last relist has not shown.
    unconfirmed: Vec<Arc<Object>>,
    tombstones: BTreeMap<Box<str>, Tombstone>,
    /// The number of tombstones after the last removal of old ones.
    expired_tombstones: usize,
    /// The greatest version of an event since the last relist, or of an object in it.
    greatest: u64,
    /// The cache has all changes up to this version, but for events that wait for a write; while a
    /// relist runs, as of its beginning. 0 if no relist has ended.
    seen_up_to: u64,
    /// A relist has ended since the beginning or the last [`Objects::clear`].
    complete: bool,
    bytes: usize,
}

impl Objects {
    pub(super) fn live(&self) -> &LiveObjects {
        &self.live
    }

    /// Whether a relist has ended since the beginning, or since [`Objects::clear`].
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// What is known of an object; `None` if the running relist has shown it, during the first
    /// list, and if its version is no number.
    pub(super) fn known_version(&self, key: &ObjectKey) -> Option<KnownVersion> {
        let cached = self.live.get(key);
        let Some(listed) = &self.listed else {
            return KnownVersion::new(cached, self.seen_up_to);
        };
        if cached.is_some_and(|cached| listed.contains(&cached.uid)) {
            return None;
        }
        KnownVersion::during_list(cached, self.seen_up_to)
    }

    /// Notes that a watch begins at a version. The version of a list, or of a bookmark, can be
    /// above those of all objects.
    pub(super) fn begin_watch(&mut self, version: u64) {
        self.note_greatest(version);
    }

    /// The cached object, if it is this version of this uid.
    pub(super) fn same(&self, key: &ObjectKey, uid: &str, version: &str) -> Option<&Arc<Object>> {
        let is_same = |object: &&Arc<Object>| {
            *object.uid == *uid && *object.resource_version == *version && !version.is_empty()
        };
        self.live.get(key).filter(is_same)
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes an added or modified object from the watch.
    pub(super) fn apply_event(&mut self, object: Arc<Object>) -> Option<Transition> {
        self.note_greatest(object.version());
        self.apply_newer(object)
    }

    /// Takes an object unless the cached one is newer.
    fn apply_newer(&mut self, object: Arc<Object>) -> Option<Transition> {
        if let Some(cached) = self.live.get(&object.key)
            && cached.uid == object.uid
            && object.version() >= cached.version()
        {
            // The API server shows the write: the object needs no other confirmation.
            self.confirmed_at.remove(&object.key);
        }
        if self.tombstones.contains_key(&object.uid) {
            return None;
        }
        self.put(object)
    }

    /// Takes a deleted object from the watch.
    pub(super) fn apply_deleted_event(
        &mut self,
        object: &Object,
        now: Instant,
    ) -> Option<Transition> {
        self.note_greatest(object.version());
        self.add_tombstone(&object.uid, now, true);
        let cached = self.live.get(&object.key)?;
        if cached.uid != object.uid {
            return None;
        }
        let cached = cached.clone();
        self.live.clear_unknown(&object.key);
        Some(self.remove(cached))
    }

    /// Begins a relist.
    pub(super) fn begin_relist(&mut self) {
        self.relist += 1;
        self.greatest = 0;
        self.unconfirmed.clear();
        self.lacking_fields.clear();
        self.listed = Some(BTreeSet::new());
    }

    /// Takes an object from the running relist. It replaces the cached one of its key, unless a
    /// write response since the beginning of the relist confirms a newer one: the API server lists
    /// what is there, and watch events do not come meanwhile.
    pub(super) fn apply_listed(&mut self, object: Arc<Object>) -> Option<Transition> {
        self.note_greatest(object.version());
        if let Some(tombstone) = self.tombstones.get(&object.uid) {
            // A deletion during the relist is newer than the relist. One before it that the relist
            // contradicts did not happen.
            if tombstone.relist >= self.relist {
                return None;
            }
            self.tombstones.remove(&object.uid);
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(object.uid.clone());
        }
        if self.confirmed_at.get(&object.key) == Some(&self.relist) {
            return self.apply_newer(object);
        }
        self.confirmed_at.remove(&object.key);
        self.replace(object)
    }

    /// Begins a list of fields.
    pub(super) fn begin_field_list(&mut self) {
        self.lacking_fields = self.live.all().map(|object| object.uid.clone()).collect();
    }

    /// Takes the fields of an object from a list of fields. Of another version than the cached one,
    /// its event is on its way, or has been there.
    pub(super) fn apply_fields(&mut self, object: Arc<Object>) {
        let cached = self.same(&object.key, &object.uid, &object.resource_version);
        if let Some(cached) = cached.filter(|cached| self.lacking_fields.contains(&cached.uid)) {
            let cached = cached.clone();
            self.replace_text(&cached, object);
        }
    }

    /// Whether every object has the fields of the list of fields.
    pub(super) fn have_all_fields(&self) -> bool {
        self.lacking_fields.is_empty()
    }

    /// Whether a relist runs.
    pub(super) fn is_relisting(&self) -> bool {
        self.listed.is_some()
    }

    /// Ends the relist: removes the objects that it has not shown, unless a write response since
    /// its beginning confirms them. [`Objects::unconfirmed`] gives these.
    pub(super) fn end_relist(&mut self, now: Instant) -> Vec<Transition> {
        let listed = self.listed.take().unwrap_or_default();
        let relist = self.relist;
        let (kept, missing): (Vec<_>, Vec<_>) = self
            .live
            .all()
            .filter(|object| !listed.contains(&object.uid))
            .cloned()
            .partition(|object| self.confirmed_at.get(&object.key) == Some(&relist));
        self.unconfirmed = kept;
        let removed = missing
            .into_iter()
            .map(|object| {
                self.add_tombstone(&object.uid, now, true);
                self.remove(object)
            })
            .collect();
        for tombstone in self.tombstones.values_mut() {
            tombstone.confirmed |= tombstone.relist < relist;
        }
        self.live.clear_unknown_before(relist);
        self.complete = true;
        self.seen_up_to = self.greatest;
        removed
    }

    /// Takes the object of a write response.
    pub(super) fn record_write(&mut self, object: Arc<Object>) -> Option<Transition> {
        self.put_confirmed(object)
    }

    /// Takes the object of an answer that contradicts what was known before the request, if the
    /// cached object is still the known one. The answer shows what is there now: the restore has
    /// undone a deletion of its uid.
    pub(super) fn record_contradiction(
        &mut self,
        object: Arc<Object>,
        known: &[KnownVersion],
    ) -> Option<Transition> {
        let cached = self.live.get(&object.key);
        let is_outdated =
            |known: &KnownVersion| known.is_of(cached) && known.is_contradicted_by(&object);
        if !known.iter().any(is_outdated) {
            return None;
        }
        self.tombstones.remove(&object.uid);
        let key = object.key.clone();
        let transition = self.replace(object);
        if transition.is_some() {
            self.confirmed_at.insert(key, self.relist);
        }
        transition
    }

    /// Takes the success of a delete of this uid.
    pub(super) fn record_deletion(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        now: Instant,
    ) -> Option<Transition> {
        self.add_tombstone(uid, now, false);
        let cached = self.live.get(key).filter(|cached| &*cached.uid == uid)?.clone();
        self.live.clear_unknown(key);
        Some(self.remove(cached))
    }

    /// Marks the cached state of a key as wrong or doubtful.
    pub(super) fn mark_unknown(&mut self, key: &ObjectKey) {
        self.live.mark_unknown(key, self.relist);
    }

    /// Takes the response to a GET of an unknown key.
    pub(super) fn resolve_unknown(
        &mut self,
        key: &ObjectKey,
        found: Option<Arc<Object>>,
    ) -> Option<Transition> {
        // Without the mark, an event or a relist came in the meantime, which is newer than a
        // response "not found".
        let unknown = self.live.clear_unknown(key);
        match found {
            Some(object) => self.put_confirmed(object),
            None if unknown => {
                let cached = self.live.get(key)?.clone();
                Some(self.remove(cached))
            }
            None => None,
        }
    }

    /// The objects that the last relist has not shown and that still only a write response
    /// confirms.
    pub(super) fn unconfirmed(&self) -> Vec<Arc<Object>> {
        let is_unconfirmed = |object: &&Arc<Object>| {
            self.confirmed_at.contains_key(&object.key)
                && self.live.get(&object.key).is_some_and(|cached| Arc::ptr_eq(cached, object))
        };
        self.unconfirmed.iter().filter(is_unconfirmed).cloned().collect()
    }

    /// Takes the response to a GET of an unconfirmed object.
    pub(super) fn confirm(
        &mut self,
        was: &Arc<Object>,
        found: Option<Arc<Object>>,
    ) -> Option<Transition> {
        if let Some(object) = found {
            let transition = self.apply_newer(object);
            self.confirmed_at.remove(&was.key);
            return transition;
        }
        let cached = self.live.get(&was.key)?.clone();
        (Arc::ptr_eq(&cached, was) && self.confirmed_at.contains_key(&was.key))
            .then(|| self.remove(cached))
    }

    /// Removes all objects: the API server does not serve the kind any more.
    pub(super) fn clear(&mut self) -> Vec<Transition> {
        let removed = self
            .live
            .all()
            .map(|object| Transition { before: Some(object.clone()), after: None })
            .collect();
        *self = Self { relist: self.relist, ..Self::default() };
        removed
    }

    /// Puts an object that a response confirms: the running relist does not remove it.
    fn put_confirmed(&mut self, object: Arc<Object>) -> Option<Transition> {
        if self.tombstones.contains_key(&object.uid) {
            return None;
        }
        let key = object.key.clone();
        let transition = self.put(object);
        if transition.is_some() {
            self.confirmed_at.insert(key, self.relist);
        }
        transition
    }

    fn note_greatest(&mut self, version: u64) {
        self.greatest = self.greatest.max(version);
        if self.complete && self.listed.is_none() {
            self.seen_up_to = self.greatest;
        }
    }

    fn put(&mut self, object: Arc<Object>) -> Option<Transition> {
        let before = self.live.get(&object.key).cloned();
        if let Some(cached) = &before
            && !is_newer(&object, cached)
        {
            return None;
        }
        Some(self.insert(object, before))
    }

    /// Puts an object in place of the cached one, also of a newer one. In place of itself it is no
    /// change, but it may have other fields.
    fn replace(&mut self, object: Arc<Object>) -> Option<Transition> {
        let before = self.live.get(&object.key).cloned();
        if let Some(cached) = &before
            && cached.uid == object.uid
            && cached.resource_version == object.resource_version
        {
            self.replace_text(cached, object);
            return None;
        }
        Some(self.insert(object, before))
    }

    /// Puts an object in place of the same version of it, which may have other fields.
    fn replace_text(&mut self, cached: &Object, object: Arc<Object>) {
        self.lacking_fields.remove(&object.uid);
        if object.text != cached.text {
            self.bytes = self.bytes - cached.bytes() + object.bytes();
            self.live.replace_text(object);
        }
    }

    fn insert(&mut self, object: Arc<Object>, before: Option<Arc<Object>>) -> Transition {
        if let Some(cached) = &before {
            self.bytes -= cached.bytes();
        }
        self.bytes += object.bytes();
        self.lacking_fields.remove(&object.uid);
        if let Some(cached) = &before {
            self.lacking_fields.remove(&cached.uid);
        }
        self.live.insert(object.clone(), before.as_deref());
        Transition { before, after: Some(object) }
    }

    fn remove(&mut self, cached: Arc<Object>) -> Transition {
        self.bytes -= cached.bytes();
        self.confirmed_at.remove(&cached.key);
        self.lacking_fields.remove(&cached.uid);
        self.live.remove(&cached);
        Transition { before: Some(cached), after: None }
    }

    fn add_tombstone(&mut self, uid: &str, now: Instant, confirmed: bool) {
        let relist = self.relist;
        let tombstone = self.tombstones.entry(uid.into()).or_insert(Tombstone {
            at: now,
            relist,
            confirmed: false,
        });
        tombstone.confirmed |= confirmed;
        // The removal of old ones visits all. So it runs when their number has doubled since the
        // last one, which bounds their number and the cost per deletion.
        if self.tombstones.len() > self.expired_tombstones * 2 + 64 {
            self.tombstones.retain(|_, tombstone| {
                !tombstone.confirmed || age(now, tombstone.at) < TOMBSTONE_TTL
            });
            self.expired_tombstones = self.tombstones.len();
        }
    }
}

fn age(now: Instant, then: Instant) -> Duration {
    now.saturating_duration_since(then)
}

/// Compares versions, which increase over all objects of a resource. The order of events decides
/// for a server whose versions are no numbers.
fn is_newer(object: &Object, cached: &Object) -> bool {
    match (object.version(), cached.version()) {
        (0, _) | (_, 0) => object.resource_version != cached.resource_version,
        (new, old) => new > old,
    }
}
