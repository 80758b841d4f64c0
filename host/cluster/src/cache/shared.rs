//! The caches and who may read which, behind one lock.
//!
//! One lock for all, so that a frozen view is of one moment over all kinds. It is held for
//! the time of a lookup or an insert, never while something waits or is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::CacheSize;
use super::cell::{
    Admission, Cache, CacheId, Content, Member, MemberState, Phase, WatchEvent, changed, first,
    state_of, told,
};
use super::change::{KindState, Listener, Notice, Notices, Source};
use super::objects::{Objects, Transition};
use super::review::review;
use super::snapshot::{CacheSnapshot, SnapshotPart};
use super::watch::watch;
use crate::settings::GRANT_VALID;
use crate::{ApiClient, ApiError, Denial, Env, Identity, Mismatch};

/// Writes of one object that are under way.
#[derive(Default)]
struct InFlightWrites {
    writes: usize,
    /// What watches said of the object meanwhile.
    parked: Vec<(CacheId, u64, WatchEvent)>,
}

struct Inner {
    caches: BTreeMap<CacheId, Cache>,
    writing: BTreeMap<Arc<Kind>, BTreeMap<ObjectKey, InFlightWrites>>,
    numbers: u64,
}

pub(super) struct Shared {
    env: Env,
    inner: Mutex<Inner>,
    notices: Notices,
    states: Notify,
}

impl Shared {
    pub(super) fn new(env: Env, listener: Arc<dyn Listener>) -> Self {
        Self {
            env,
            inner: Mutex::new(Inner {
                caches: BTreeMap::new(),
                writing: BTreeMap::new(),
                numbers: 0,
            }),
            notices: Notices::new(listener),
            states: Notify::new(),
        }
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Resolves when the state of some view changes after this call.
    pub(super) fn state_changed(&self) -> impl Future<Output = ()> + '_ {
        let mut notified = Box::pin(self.states.notified());
        notified.as_mut().enable();
        notified
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the caches, and tells what came of it after the lock is gone.
    fn with<R>(&self, act: impl FnOnce(&mut Inner, &mut Vec<Notice>) -> R) -> R {
        let mut notices = Vec::new();
        let mut inner = self.lock();
        let result = act(&mut inner, &mut notices);
        let states = notices.iter().any(|notice| matches!(notice, Notice::State(_)));
        self.notices.push(notices);
        drop(inner);
        if states {
            self.states.notify_waiters();
        }
        self.notices.deliver();
        result
    }

    /// The same for one cache, if it is still the one with this serial.
    fn with_cache<R>(
        &self,
        id: &CacheId,
        serial: u64,
        act: impl FnOnce(&mut Cache, &mut Vec<Notice>) -> R,
    ) -> Option<R> {
        self.with(|inner, notices| {
            let cache = inner.caches.get_mut(id).filter(|cache| cache.serial == serial)?;
            Some(act(cache, notices))
        })
    }

    // Views come and go.

    pub(super) fn join<'a>(
        self: &Arc<Self>,
        client: &ApiClient,
        module: &Arc<str>,
        ids: impl Iterator<Item = &'a CacheId>,
    ) -> u64 {
        let mut inner = self.lock();
        inner.numbers += 1;
        let number = inner.numbers;
        for id in ids {
            let cache = inner.caches.entry(id.clone()).or_insert_with(|| self.cache(id, number));
            let serial = cache.serial;
            let identity = client.identity().clone();
            // The first one needs no review: its own list says whether it may.
            if cache.holder.is_none() && cache.members.is_empty() {
                cache.holder = Some(identity.clone());
            }
            let member =
                cache.members.entry(identity).or_insert_with(|| self.member(id, serial, client));
            let state = state_of(&cache.phase, &member.admission);
            member.views.insert(number, (module.clone(), state));
            cache.notify.notify_one();
        }
        number
    }

    fn cache(self: &Arc<Self>, id: &CacheId, serial: u64) -> Cache {
        let notify = Arc::new(Notify::new());
        let task = watch(self.clone(), id.clone(), serial, notify.clone());
        Cache {
            serial,
            objects: Objects::default(),
            phase: Phase::Syncing,
            members: BTreeMap::new(),
            holder: None,
            notify,
            _task: self.env.spawn("cache", task),
        }
    }

    fn member(self: &Arc<Self>, id: &CacheId, serial: u64, client: &ApiClient) -> Member {
        let notify = Arc::new(Notify::new());
        let task = review(self.clone(), id.clone(), serial, client.clone(), notify.clone());
        Member {
            client: client.clone(),
            admission: Admission::Pending,
            proven: self.env.instant(),
            views: BTreeMap::new(),
            notify,
            _review: self.env.spawn("access review", task),
        }
    }

    pub(super) fn leave<'a>(
        &self,
        number: u64,
        identity: &Identity,
        ids: impl Iterator<Item = &'a CacheId>,
    ) {
        // Dropped after the lock: what a task holds may be dropped with it.
        let mut gone_members = Vec::new();
        let mut gone_caches = Vec::new();
        let mut inner = self.lock();
        for id in ids {
            let Some(cache) = inner.caches.get_mut(id) else { continue };
            let Some(member) = cache.members.get_mut(identity) else { continue };
            member.views.remove(&number);
            if !member.views.is_empty() {
                continue;
            }
            gone_members.extend(cache.members.remove(identity));
            if cache.members.is_empty() {
                gone_caches.extend(inner.caches.remove(id));
            } else if cache.holder.as_ref() == Some(identity) {
                cache.holder = None;
                cache.notify.notify_one();
            }
        }
        drop(inner);
    }

    // What views read.

    pub(super) fn snapshot(
        &self,
        number: u64,
        identity: &Identity,
        ids: &BTreeMap<Arc<Kind>, Vec<CacheId>>,
    ) -> CacheSnapshot {
        let inner = self.lock();
        let part = |id: &CacheId| {
            let cache = inner.caches.get(id);
            let member = cache
                .and_then(|cache| cache.members.get(identity))
                .filter(|member| member.views.contains_key(&number));
            let (state, live) = match (cache, member) {
                (Some(cache), Some(member)) => {
                    let state = state_of(&cache.phase, &member.admission);
                    let live = (state == KindState::Synced).then(|| cache.objects.live().clone());
                    (state, live)
                }
                _ => (KindState::Syncing, None),
            };
            SnapshotPart { namespace: id.namespace.clone(), state, live }
        };
        let kinds =
            ids.iter().map(|(kind, ids)| (kind.clone(), ids.iter().map(part).collect())).collect();
        CacheSnapshot { kinds }
    }

    pub(super) fn sizes(&self) -> Vec<CacheSize> {
        self.lock()
            .caches
            .iter()
            .map(|(id, cache)| CacheSize {
                kind: id.kind.clone(),
                namespace: id.namespace.clone(),
                metadata_only: id.content == Content::Metadata,
                objects: cache.objects.len(),
                bytes: cache.objects.bytes(),
            })
            .collect()
    }

    // What writers and lookups say.

    /// Does something with each cache of a kind that holds a namespace.
    pub(super) fn each(
        &self,
        kind: &Kind,
        namespace: &str,
        source: Source,
        what: &[Content],
        mut act: impl FnMut(&mut Objects, Instant) -> Option<Transition>,
    ) {
        let now = self.env.instant();
        self.with(|inner, notices| {
            for (id, cache) in &mut inner.caches {
                if *id.kind == *kind && id.covers(namespace) && what.contains(&id.content) {
                    // Before the first list is done, nothing is told.
                    let step = act(&mut cache.objects, now);
                    if cache.objects.is_complete() {
                        notices.extend(step.map(|step| changed(id, step, source)));
                    }
                }
            }
        });
    }

    /// A write of an object begins: what watches say of it waits until the write is answered.
    pub(super) fn write_begins(&self, kind: &Arc<Kind>, key: &ObjectKey) {
        let mut inner = self.lock();
        let keys = inner.writing.entry(kind.clone()).or_default();
        keys.entry(key.clone()).or_default().writes += 1;
    }

    /// It has been answered, or given up: what waited enters.
    pub(super) fn write_ends(&self, kind: &Arc<Kind>, key: &ObjectKey) {
        let now = self.env.instant();
        self.with(|inner, notices| {
            let Some(keys) = inner.writing.get_mut(kind) else { return };
            let Some(flight) = keys.get_mut(key) else { return };
            flight.writes -= 1;
            if flight.writes > 0 {
                return;
            }
            let parked = keys.remove(key).map(|flight| flight.parked).unwrap_or_default();
            if keys.is_empty() {
                inner.writing.remove(kind);
            }
            for (id, serial, watch_event) in parked {
                let cache = inner.caches.get_mut(&id).filter(|cache| cache.serial == serial);
                if let Some(cache) = cache {
                    cache.apply(&id, notices, |objects| watch_event.enter(objects, now));
                }
            }
        });
    }

    /// All caches of a group look at discovery again, also those that are read: a definition may
    /// have been replaced by another one.
    pub(super) fn look_for(&self, group: &str) {
        let inner = self.lock();
        for (id, cache) in &inner.caches {
            if id.kind.group() == group {
                cache.notify.notify_one();
            }
        }
    }

    // What the task of a cache says.

    /// Whose session fills the cache from now on; `None` if nobody's may. An error if the cache is
    /// closed.
    pub(super) fn elect(&self, id: &CacheId, serial: u64) -> Result<Option<ApiClient>, Closed> {
        self.with_cache(id, serial, |cache, notices| {
            let may = |member: &&Member| !matches!(member.admission, Admission::Denied(_));
            let chosen = cache
                .holder
                .as_ref()
                .filter(|identity| cache.members.get(*identity).as_ref().is_some_and(may))
                .or_else(|| first(cache, |member| member.admission == Admission::Admitted))
                .or_else(|| first(cache, |member| member.admission == Admission::Pending))
                .cloned();
            if chosen != cache.holder
                && let Some(identity) = &chosen
            {
                tracing::debug!(cache = %id, %identity, "watch taken over by another identity");
            }
            cache.holder = chosen;
            let member = cache.holder.as_ref().and_then(|identity| cache.members.get(identity));
            let client = member.map(|member| member.client.clone());
            let is_known = matches!(cache.phase, Phase::NotServed | Phase::Mismatched(_));
            if client.is_none() && !is_known {
                // Nobody watches: what is there is not served until it has been listed again.
                cache.phase = Phase::Syncing;
                told(id, cache, notices);
            }
            client
        })
        .ok_or(Closed)
    }

    pub(super) fn is_holder(&self, id: &CacheId, serial: u64, identity: &Identity) -> bool {
        self.lock()
            .caches
            .get(id)
            .filter(|cache| cache.serial == serial)
            .is_some_and(|cache| cache.holder.as_ref() == Some(identity))
    }

    /// Whether the cache has been read, and its watch goes on from there.
    pub(super) fn is_synced(&self, id: &CacheId, serial: u64) -> bool {
        self.lock()
            .caches
            .get(id)
            .filter(|cache| cache.serial == serial)
            .is_some_and(|cache| cache.phase == Phase::Synced)
    }

    /// An event of the watch.
    pub(super) fn event(&self, id: &CacheId, serial: u64, watch_event: WatchEvent) {
        let now = self.env.instant();
        self.with(|inner, notices| {
            let Some(cache) = inner.caches.get_mut(id).filter(|cache| cache.serial == serial)
            else {
                return;
            };
            let flight =
                inner.writing.get_mut(&id.kind).and_then(|keys| keys.get_mut(watch_event.key()));
            match flight {
                Some(flight) => flight.parked.push((id.clone(), serial, watch_event)),
                None => cache.apply(id, notices, |objects| watch_event.enter(objects, now)),
            }
        });
    }

    /// Something that a list or a lookup shows.
    pub(super) fn shown(
        &self,
        id: &CacheId,
        serial: u64,
        act: impl FnOnce(&mut Objects) -> Option<Transition>,
    ) {
        self.with_cache(id, serial, |cache, notices| cache.apply(id, notices, act));
    }

    /// A list has ended: the cache can be read, and its holder has shown that it may.
    pub(super) fn synced(&self, id: &CacheId, serial: u64) {
        let now = self.env.instant();
        self.with_cache(id, serial, |cache, notices| {
            let first = !cache.objects.is_complete();
            let steps = cache.objects.end_relist(now);
            if !first {
                let steps = steps.into_iter();
                notices.extend(steps.map(|step| changed(id, step, Source::Watch)));
            }
            cache.phase = Phase::Synced;
            if let Some(identity) = &cache.holder
                && let Some(member) = cache.members.get_mut(identity)
            {
                member.admission = Admission::Admitted;
                member.proven = now;
            }
            told(id, cache, notices);
        });
    }

    /// The kind is not served: what was there is gone.
    pub(super) fn not_served(&self, id: &CacheId, serial: u64) {
        self.close(id, serial, Phase::NotServed);
    }

    /// The kind is served otherwise than it is declared: what was there is not shown any more.
    pub(super) fn mismatched(&self, id: &CacheId, serial: u64, mismatch: Mismatch) {
        self.close(id, serial, Phase::Mismatched(mismatch));
    }

    fn close(&self, id: &CacheId, serial: u64, phase: Phase) {
        self.with_cache(id, serial, |cache, notices| {
            let complete = cache.objects.is_complete();
            let steps = cache.objects.clear();
            if complete {
                let steps = steps.into_iter();
                notices.extend(steps.map(|step| changed(id, step, Source::Watch)));
            }
            cache.phase = phase;
            told(id, cache, notices);
        });
    }

    /// The cache could not be read. Told only if it never was: else it is read on.
    pub(super) fn failing(&self, id: &CacheId, serial: u64, message: String) {
        self.with_cache(id, serial, |cache, notices| {
            if cache.phase != Phase::Synced {
                cache.phase = Phase::Failing(message);
                told(id, cache, notices);
            }
        });
    }

    pub(super) fn unconfirmed(&self, id: &CacheId, serial: u64) -> Vec<Arc<Object>> {
        self.lock()
            .caches
            .get(id)
            .filter(|cache| cache.serial == serial)
            .map(|cache| cache.objects.unconfirmed())
            .unwrap_or_default()
    }

    // What reviews say.

    /// Where a member stands; an error if it has gone.
    pub(super) fn member_state(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
    ) -> Result<MemberState, Closed> {
        let inner = self.lock();
        let cache = inner.caches.get(id).filter(|cache| cache.serial == serial).ok_or(Closed)?;
        let member = cache.members.get(identity).ok_or(Closed)?;
        Ok(match &member.admission {
            Admission::Denied(_) => MemberState::Denied,
            Admission::Unproven(_) => MemberState::Pending,
            _ if cache.holder.as_ref() == Some(identity) => MemberState::Holder,
            Admission::Pending => MemberState::Pending,
            Admission::Admitted => MemberState::Admitted,
        })
    }

    /// A review, or the watch of the holder, has shown whether a member may read.
    pub(super) fn admit(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
        denial: Option<Denial>,
    ) {
        let now = self.env.instant();
        self.with_cache(id, serial, |cache, notices| {
            let Some(member) = cache.members.get_mut(identity) else { return };
            if let Some(denial) = denial {
                if !matches!(member.admission, Admission::Denied(_)) {
                    tracing::info!(cache = %id, %denial, "watch forbidden");
                }
                member.admission = Admission::Denied(denial);
                member.notify.notify_one();
                if cache.holder.as_ref() == Some(identity) {
                    cache.holder = None;
                    cache.notify.notify_one();
                }
            } else {
                member.admission = Admission::Admitted;
                member.proven = now;
                if cache.holder.is_none() {
                    cache.notify.notify_one();
                }
            }
            told(id, cache, notices);
        });
    }

    /// A review was not answered. An admitted identity stays admitted for [`GRANT_VALID`] since the
    /// server last showed that it may read, and no longer.
    pub(super) fn review_failed(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
        error: &ApiError,
    ) {
        let now = self.env.instant();
        self.with_cache(id, serial, |cache, notices| {
            let Some(member) = cache.members.get_mut(identity) else { return };
            if member.admission == Admission::Admitted
                && now.duration_since(member.proven) >= GRANT_VALID
            {
                let minutes = GRANT_VALID.as_secs() / 60;
                let message = format!(
                    "whether {identity} may read it is not known: the API server has answered no access review for {minutes} minutes ({error}); it is read again when one is answered"
                );
                tracing::warn!(cache = %id, "watch stopped: {message}");
                member.admission = Admission::Unproven(message);
                told(id, cache, notices);
            }
        });
    }
}

/// The cache is closed, or another one has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;
