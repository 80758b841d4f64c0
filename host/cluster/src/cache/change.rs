//! What is told of the caches, and in which order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

use crate::{Denial, Mismatch};

/// How a cache got to know of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A watch, or the list before it.
    Watch,
    /// The answer to a write of ours.
    Write,
    /// A live GET that settled what was unknown.
    Lookup,
}

/// An object in one cache came, changed or went.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for one of all namespaces. An object may
    /// be in a cache of each sort, and is then told of twice.
    pub namespace: Option<Arc<str>>,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// As it was; `None` if it was not there.
    pub before: Option<Arc<Object>>,
    /// As it is; `None` if it is gone. With another uid than `before` if it was deleted
    /// and made anew.
    pub after: Option<Arc<Object>>,
    /// How it became known.
    pub source: Source,
}

impl Change {
    /// Whether the answer to a write of ours told of it.
    pub fn own_write(&self) -> bool {
        self.source == Source::Write
    }
}

/// What a view can do with a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindState {
    /// Not read yet.
    Syncing,
    /// It can be read.
    Synced,
    /// The API server does not serve it (now).
    NotServed,
    /// The API server serves it otherwise than it is declared: nothing of it is read or written.
    Mismatched(Mismatch),
    /// The view's identity may not read it.
    Forbidden(Denial),
    /// It could not be read yet, and why; tried again. (A cache that has been read once
    /// stays [`KindState::Synced`] when its watch fails: it is read on, and resumed.)
    Failing(String),
}

/// A view can do something else with a kind than before.
#[derive(Clone, Debug)]
pub struct StateChange {
    /// The module whose view it is.
    pub module: Arc<str>,
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for one of all namespaces.
    pub namespace: Option<Arc<str>>,
    /// What it can do now.
    pub state: KindState,
}

/// Who is told.
///
/// Called in the order in which things happened, never twice at once, on the thread of
/// whoever caused it or of another who is telling already; no lock is held, so that a listener may
/// freeze a view or feed a write. It should be short: it holds up a watch.
pub trait Listener: Send + Sync {
    /// An object came, changed or went. Not told while a cache is read for the
    /// first time: [`Listener::state_changed`] with [`KindState::Synced`] says that everything in
    /// it is new.
    fn changed(&self, change: &Change);

    /// A view can do something else with a kind. The state at opening is not told:
    /// ask [`View::states`](super::View::states).
    fn state_changed(&self, change: &StateChange);
}

#[derive(Debug)]
pub(super) enum Notice {
    Changed(Change),
    State(StateChange),
}

/// Tells a listener in order, outside of all locks.
pub(super) struct Notices {
    listener: Arc<dyn Listener>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Notice>,
    is_delivering: bool,
}

impl Notices {
    pub(super) fn new(listener: Arc<dyn Listener>) -> Self {
        Self { listener, queue: Mutex::default() }
    }

    /// Queues notices; called with the lock of the caches held, so that their order is that of what
    /// happened.
    pub(super) fn push(&self, notices: Vec<Notice>) {
        if !notices.is_empty() {
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.extend(notices);
        }
    }

    /// Tells what waits, unless somebody is at it already (who then tells this too).
    pub(super) fn deliver(&self) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.is_delivering || queue.waiting.is_empty() {
                return;
            }
            queue.is_delivering = true;
        }
        // A listener that panics must not silence the caches for ever.
        let _told = DeliveryGuard(&self.queue);
        loop {
            let notice = {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(notice) = queue.waiting.pop_front() else {
                    queue.is_delivering = false;
                    return;
                };
                notice
            };
            match notice {
                Notice::Changed(change) => self.listener.changed(&change),
                Notice::State(change) => self.listener.state_changed(&change),
            }
        }
    }
}

struct DeliveryGuard<'a>(&'a Mutex<Queue>);

impl Drop for DeliveryGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).is_delivering = false;
        }
    }
}
