//! The objects of one cache: what enters, what is dropped, what goes (rule 8 of the design).
//!
//! Everything comes in by version: per uid, what is not newer than what is cached is dropped.
//! Deletions go by uid. What a relist does not show goes, unless a write response vouches for it
//! that came after the relist had begun. Nothing here waits, reads a clock, or talks to a server.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::{Object, ObjectKey};
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use tokio::time::Instant;

use crate::settings::TOMBSTONE_TTL;

/// An object, ordered and found by its key.
#[derive(Clone, Debug)]
struct ByKey(Arc<Object>);

impl Borrow<ObjectKey> for ByKey {
    fn borrow(&self) -> &ObjectKey {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

/// What is there, in persistent trees: a clone costs nothing and does not change any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    objects: RedBlackTreeSetSync<ByKey>,
    /// The keys of the objects that name an owner or a primary that wrote to them, by its uid;
    /// ordered.
    owned: RedBlackTreeMapSync<Box<str>, Vec<ObjectKey>>,
    /// Where the cache is doubtful, and the relist during or after which it became so.
    unknown: RedBlackTreeMapSync<ObjectKey, u64>,
}

impl Live {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key).map(|found| &found.0)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.iter().map(|found| &found.0)
    }

    pub(super) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        self.objects
            .range::<ObjectKey, _>(ObjectKey::new(namespace, "")..)
            .map(|found| &found.0)
            .take_while(move |object| object.key.namespace() == namespace)
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.owned.get(uid).into_iter().flatten().filter_map(|key| self.get(key))
    }

    pub(super) fn is_unknown(&self, key: &ObjectKey) -> bool {
        self.unknown.contains_key(key)
    }

    pub(super) fn unknown(&self) -> impl Iterator<Item = &ObjectKey> {
        self.unknown.keys()
    }

    fn insert(&mut self, object: Arc<Object>) {
        for uid in object.owner_and_writer_uids() {
            let mut keys = self.owned.get(uid).cloned().unwrap_or_default();
            if let Err(at) = keys.binary_search(&object.key) {
                keys.insert(at, object.key.clone());
                self.owned.insert_mut(uid.into(), keys);
            }
        }
        self.objects.insert_mut(ByKey(object));
    }

    fn remove(&mut self, object: &Object) {
        self.unindex(object, &BTreeSet::new());
        self.objects.remove_mut(&object.key);
    }

    /// Takes an object out of the index of owners, except of those that it keeps.
    fn unindex(&mut self, object: &Object, kept: &BTreeSet<&str>) {
        for uid in object.owner_and_writer_uids().difference(kept) {
            let mut keys = self.owned.get(*uid).cloned().unwrap_or_default();
            keys.retain(|key| *key != object.key);
            if keys.is_empty() {
                self.owned.remove_mut(*uid);
            } else {
                self.owned.insert_mut((*uid).into(), keys);
            }
        }
    }
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) before: Option<Arc<Object>>,
    pub(super) after: Option<Arc<Object>>,
}

/// A uid that is deleted.
#[derive(Clone, Copy, Debug)]
struct Tombstone {
    /// When, on the clock of timers.
    at: Instant,
    /// The relist during or after which it was deleted.
    relist: u64,
    /// A watch event or a relist has shown it gone.
    confirmed: bool,
}

/// The objects of one cache.
#[derive(Debug, Default)]
pub(super) struct Objects {
    live: Live,
    /// How many relists have begun.
    relist: u64,
    /// The uids that the running relist has shown.
    listed: Option<BTreeSet<Box<str>>>,
    /// Objects for which a write response or a lookup vouches and no event yet, and the
    /// relist during or after which it came.
    confirmed_at: BTreeMap<ObjectKey, u64>,
    /// Those of them that the last relist has not shown.
    unconfirmed: Vec<Arc<Object>>,
    tombstones: BTreeMap<Box<str>, Tombstone>,
    /// How many were left when old ones were thrown away the last time.
    expired_tombstones: usize,
    /// A relist has ended.
    complete: bool,
    bytes: usize,
}

impl Objects {
    pub(super) fn live(&self) -> &Live {
        &self.live
    }

    /// Whether a relist has ended since the beginning, or since [`Objects::clear`].
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn len(&self) -> usize {
        self.live.objects.size()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// An event of the watch: the object is so.
    pub(super) fn event(&mut self, object: Arc<Object>) -> Option<Step> {
        if let Some(cached) = self.live.get(&object.key)
            && cached.uid == object.uid
            && object.version() >= cached.version()
        {
            // The watch has come as far as the write: it needs nobody to vouch for it.
            self.confirmed_at.remove(&object.key);
        }
        if self.tombstones.contains_key(&object.uid) {
            return None;
        }
        self.put(object)
    }

    /// An event of the watch: the object is gone.
    pub(super) fn event_deleted(&mut self, object: &Object, now: Instant) -> Option<Step> {
        self.add_tombstone(&object.uid, now, true);
        let cached = self.live.get(&object.key)?;
        if cached.uid != object.uid {
            return None;
        }
        let cached = cached.clone();
        self.live.unknown.remove_mut(&object.key);
        Some(self.take(cached))
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self) {
        self.relist += 1;
        self.unconfirmed.clear();
        self.listed = Some(BTreeSet::new());
    }

    /// The list shows an object.
    pub(super) fn listed(&mut self, object: Arc<Object>) -> Option<Step> {
        if let Some(tombstone) = self.tombstones.get(&object.uid) {
            // Deleted while the list was made: the list is older. Deleted before, and listed: it
            // was not deleted, whatever was said.
            if tombstone.relist >= self.relist {
                return None;
            }
            self.tombstones.remove(&object.uid);
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(object.uid.clone());
        }
        self.event(object)
    }

    /// The list ends: what it has not shown goes, unless somebody vouches for it since it began.
    /// Those that stay so are in [`Objects::unconfirmed`].
    pub(super) fn list_ends(&mut self, now: Instant) -> Vec<Step> {
        let listed = self.listed.take().unwrap_or_default();
        let relist = self.relist;
        let (kept, missing): (Vec<_>, Vec<_>) = self
            .live
            .all()
            .filter(|object| !listed.contains(&object.uid))
            .cloned()
            .partition(|object| self.confirmed_at.get(&object.key) == Some(&relist));
        self.unconfirmed = kept;
        let steps = missing
            .into_iter()
            .map(|object| {
                self.add_tombstone(&object.uid, now, true);
                self.take(object)
            })
            .collect();
        for tombstone in self.tombstones.values_mut() {
            tombstone.confirmed |= tombstone.relist < relist;
        }
        let settled: Vec<_> = self
            .live
            .unknown
            .iter()
            .filter(|(_, since)| **since < relist)
            .map(|(key, _)| key.clone())
            .collect();
        for key in settled {
            self.live.unknown.remove_mut(&key);
        }
        self.complete = true;
        steps
    }

    /// A write was answered: the object is so.
    pub(super) fn record_write(&mut self, object: Arc<Object>) -> Option<Step> {
        self.vouch(object)
    }

    /// A delete was answered: the object with this uid is gone.
    pub(super) fn record_deletion(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        now: Instant,
    ) -> Option<Step> {
        self.add_tombstone(uid, now, false);
        let cached = self.live.get(key).filter(|cached| &*cached.uid == uid)?.clone();
        self.live.unknown.remove_mut(key);
        Some(self.take(cached))
    }

    /// What is cached under this name is wrong or doubtful.
    pub(super) fn mark_unknown(&mut self, key: &ObjectKey) {
        self.live.unknown.insert_mut(key.clone(), self.relist);
    }

    /// A live GET that was made because the key was unknown has been answered.
    pub(super) fn resolve_unknown(
        &mut self,
        key: &ObjectKey,
        found: Option<Arc<Object>>,
    ) -> Option<Step> {
        // Without the mark an event or a relist has settled it in the meantime, and it knows
        // better than an answer that "nothing is there".
        let unknown = self.live.unknown.remove_mut(key);
        match found {
            Some(object) => self.vouch(object),
            None if unknown => {
                let cached = self.live.get(key)?.clone();
                Some(self.take(cached))
            }
            None => None,
        }
    }

    /// The objects that the last relist has not shown and that only a write response vouches
    /// for, still.
    pub(super) fn unconfirmed(&self) -> Vec<Arc<Object>> {
        let vouched = |object: &&Arc<Object>| {
            self.confirmed_at.contains_key(&object.key)
                && self.live.get(&object.key).is_some_and(|cached| Arc::ptr_eq(cached, object))
        };
        self.unconfirmed.iter().filter(vouched).cloned().collect()
    }

    /// A live GET of an unconfirmed object has been answered.
    pub(super) fn confirm(
        &mut self,
        was: &Arc<Object>,
        found: Option<Arc<Object>>,
    ) -> Option<Step> {
        if let Some(object) = found {
            let step = self.event(object);
            self.confirmed_at.remove(&was.key);
            return step;
        }
        let cached = self.live.get(&was.key)?.clone();
        (Arc::ptr_eq(&cached, was) && self.confirmed_at.contains_key(&was.key))
            .then(|| self.take(cached))
    }

    /// The kind is not served any more: its objects are gone.
    pub(super) fn clear(&mut self) -> Vec<Step> {
        let steps = self
            .live
            .all()
            .map(|object| Step { before: Some(object.clone()), after: None })
            .collect();
        *self = Self { relist: self.relist, ..Self::default() };
        steps
    }

    fn vouch(&mut self, object: Arc<Object>) -> Option<Step> {
        if self.tombstones.contains_key(&object.uid) {
            return None;
        }
        let key = object.key.clone();
        let step = self.put(object);
        if step.is_some() {
            self.confirmed_at.insert(key, self.relist);
        }
        step
    }

    fn put(&mut self, object: Arc<Object>) -> Option<Step> {
        let before = self.live.get(&object.key).cloned();
        if let Some(cached) = &before
            && !is_newer(&object, cached)
        {
            return None;
        }
        if let Some(cached) = &before {
            self.bytes -= cached.bytes();
            self.live.unindex(cached, &object.owner_and_writer_uids());
        }
        self.bytes += object.bytes();
        self.live.unknown.remove_mut(&object.key);
        self.live.insert(object.clone());
        Some(Step { before, after: Some(object) })
    }

    fn take(&mut self, cached: Arc<Object>) -> Step {
        self.bytes -= cached.bytes();
        self.confirmed_at.remove(&cached.key);
        self.live.remove(&cached);
        Step { before: Some(cached), after: None }
    }

    fn add_tombstone(&mut self, uid: &str, now: Instant, confirmed: bool) {
        let relist = self.relist;
        let tombstone = self.tombstones.entry(uid.into()).or_insert(Tombstone {
            at: now,
            relist,
            confirmed: false,
        });
        tombstone.confirmed |= confirmed;
        // Old ones go when there are twice as many as were left the last time: the cost of it
        // is spread, and the graves stay about those of the last minutes.
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

/// Versions count up within one resource, whatever the object. A server that writes something
/// else than numbers is believed in the order of its events.
fn is_newer(object: &Object, cached: &Object) -> bool {
    match (object.version(), cached.version()) {
        (0, _) | (_, 0) => object.resource_version != cached.resource_version,
        (new, old) => new > old,
    }
}
