//! The queue of notices for the listener: [`Notices`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::cache_id::CacheId;
use super::change::{Change, Source};
use super::kind_state::StateChange;
use super::listener::Listener;
use super::objects::Transition;

/// One call of the listener.
#[derive(Debug)]
pub(super) enum Notice {
    Changed(Change),
    State(StateChange),
}

impl Notice {
    /// The notice of an object's change in a cache.
    pub(super) fn changed(id: &CacheId, transition: Transition, source: Source) -> Self {
        let Transition { before, after } = transition;
        let key = after.as_ref().or(before.as_ref()).map(|object| object.key.clone());
        Self::Changed(Change {
            kind: id.kind.clone(),
            namespace: id.namespace.clone(),
            key: key.unwrap_or_default(),
            before,
            after,
            source,
        })
    }
}

/// Calls the listener with each notice, in order and outside of all locks.
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

    /// Queues notices. The caller holds the lock of the caches, so the queue has the order of the
    /// changes.
    pub(super) fn push(&self, notices: Vec<Notice>) {
        if !notices.is_empty() {
            self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.extend(notices);
        }
    }

    /// Delivers the queued notices. If another thread is delivering, that thread delivers them.
    pub(super) fn deliver(&self) {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.is_delivering || queue.waiting.is_empty() {
                return;
            }
            queue.is_delivering = true;
        }
        // After a listener has panicked, others must be able to deliver.
        let _guard = DeliveryGuard(&self.queue);
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
