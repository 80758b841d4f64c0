//! All caches behind one lock: [`CacheStore`].
//!
//! One lock for all caches makes a snapshot of several kinds consistent. The store holds it for
//! the time of a lookup or an insert, never while it waits or calls the listener.
//!
//! One file per caller: `watch_events` for the watch of a cache, `writes` for writers, `views` for
//! views, `admissions` for access reviews, `versions` for answers that contradict the
//! caches, `compression` for objects that are about to enter.

mod admissions;
mod compression;
mod versions;
mod views;
mod watch_events;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_contract::Kind;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::cache_id::CacheId;
use super::in_flight_writes::InFlightWrites;
use super::kind_cache::KindCache;
use super::listener::Listener;
use super::notices::{Notice, Notices};
use crate::Env;

/// All caches, their views, and the writes in flight.
pub(super) struct CacheStore {
    env: Env,
    inner: Mutex<Inner>,
    notices: Notices,
    /// Wakes the callers that wait for a change of a view's state.
    states: Notify,
}

struct Inner {
    caches: BTreeMap<CacheId, KindCache>,
    writes: InFlightWrites,
    /// The number of views so far.
    views: u64,
    contradictions: Contradictions,
}

/// The answers that contradicted the caches.
#[derive(Default)]
struct Contradictions {
    /// When an answer last contradicted the caches, by the kind of its object.
    of_kinds: BTreeMap<Kind, Instant>,
    /// When all caches last had to list again for one.
    listed: Option<Instant>,
}

/// The cache is closed, or another one has replaced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

impl Inner {
    /// The cache with this id, if it has this serial.
    fn cache(&self, id: &CacheId, serial: u64) -> Option<&KindCache> {
        self.caches.get(id).filter(|cache| cache.serial == serial)
    }

    fn cache_mut(&mut self, id: &CacheId, serial: u64) -> Option<&mut KindCache> {
        self.caches.get_mut(id).filter(|cache| cache.serial == serial)
    }
}

impl CacheStore {
    pub(super) fn new(env: Env, listener: Arc<dyn Listener>) -> Self {
        let inner = Inner {
            caches: BTreeMap::new(),
            writes: InFlightWrites::default(),
            views: 0,
            contradictions: Contradictions::default(),
        };
        Self {
            env,
            inner: Mutex::new(inner),
            notices: Notices::new(listener),
            states: Notify::new(),
        }
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the caches under the lock, and calls the listener after it.
    fn update<R>(&self, change: impl FnOnce(&mut Inner, &mut Vec<Notice>) -> R) -> R {
        let mut notices = Vec::new();
        let mut inner = self.lock();
        let result = change(&mut inner, &mut notices);
        let has_states = notices.iter().any(|notice| matches!(notice, Notice::State(_)));
        self.notices.push(notices);
        drop(inner);
        if has_states {
            self.states.notify_waiters();
        }
        self.notices.deliver();
        result
    }

    /// Changes one cache, if it has this serial.
    fn update_cache<R>(
        &self,
        id: &CacheId,
        serial: u64,
        change: impl FnOnce(&mut KindCache, &mut Vec<Notice>) -> R,
    ) -> Option<R> {
        self.update(|inner, notices| Some(change(inner.cache_mut(id, serial)?, notices)))
    }
}
