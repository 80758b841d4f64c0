//! Who may run a guest now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A fair semaphore for sandbox calls.
///
/// More threads in guests than cores ruin the tail latency of all of them, so a call is made
/// with a [`Permit`] in hand. Permits are given in the order of asking, and one module
/// holds or waits for at most half of them: a busy module never keeps another one out.
#[derive(Clone, Debug)]
pub struct Permits {
    all: Arc<Semaphore>,
    /// Of each module that holds or waits for one.
    modules: Arc<Mutex<BTreeMap<String, Weak<Semaphore>>>>,
    half: usize,
}

/// The right to make sandbox calls, one at a time. Given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once allows nothing"]
pub struct Permit {
    // Dropped in this order: the place among all first, so that whoever waits there goes on.
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Permits {
    /// As many permits as `count`, at least two.
    pub fn new(count: usize) -> Self {
        let count = count.clamp(2, Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(count)), modules: Arc::default(), half: count / 2 }
    }

    /// As many permits as there are cores, at least two.
    pub fn per_core() -> Self {
        Self::new(cores())
    }

    /// Waits for a permit for `module`.
    ///
    /// Giving up the wait (dropping the future) loses nothing but the place in the queue.
    pub async fn acquire(&self, module: &str) -> Permit {
        // Neither semaphore is ever closed, so neither wait fails; the fields are
        // `Option`s only because that cannot be said in types.
        let own = self.of_module(module).acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Permit { _all: all, _own: own }
    }

    /// How many calls could start now.
    pub fn available(&self) -> usize {
        self.all.available_permits()
    }

    fn of_module(&self, module: &str) -> Arc<Semaphore> {
        // A panic elsewhere cannot leave this map half written.
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = modules.get(module).and_then(Weak::upgrade) {
            return semaphore;
        }
        modules.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.half));
        modules.insert(module.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// The cores of this machine, or what this process may use of them.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
