//! What the rooms of one operator share, and how changes wake keys.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::events::Events;
use innkeeper_cluster::{Caches, Change as CacheChange, Cluster, Env, KindState, Listener, crd};
use innkeeper_contract::Kind;
use innkeeper_core::{Key, Object, Target};
use innkeeper_sandbox::Permits;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::cause::Cause;
use crate::crds::Statuses;
use crate::health::Health;
use crate::memory::Memories;
use crate::metrics::Metrics;
use crate::queue::{Queue, Work};
use crate::reads::{Begun, Change, Index};
use crate::record::ReadRecord;
use crate::running::Running;
use crate::sources::{self, CONFIG_MAP, HOST_MODULE, Happened};
use crate::watchdog::Watchdog;
use crate::writes::Writes;

/// How calls of guests are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// On threads that may block; needs a runtime of several threads.
    Threads,
    /// On the loop's own thread, one at a time and in order: for tests and simulation.
    Inline,
}

/// What the rooms of one operator share.
pub struct Shared {
    /// Clock, randomness, spawning.
    pub env: Env,
    /// The connection.
    pub cluster: Cluster,
    /// Who runs in the sandbox.
    pub permits: Permits,
    /// How.
    pub execution: Execution,
    /// Writes Events.
    pub events: Events,
    /// Figures.
    pub metrics: Metrics,
    /// Which modules fail.
    pub health: Health,
    /// Whether the supervisor takes its turns.
    pub watchdog: Watchdog,
    /// What is known of each primary from its rounds before.
    pub memories: Memories,
    /// Held while stored objects of a definition are checked: one check at a time over all modules.
    pub object_checks: tokio::sync::Mutex<()>,
    /// Rings when there may be work.
    pub bell: Notify,
    started: Instant,
    queue: Mutex<Queue>,
    index: Mutex<Index>,
    writes: Mutex<Writes>,
    modules: RwLock<BTreeMap<Arc<str>, Arc<Running>>>,
    modules_known: AtomicBool,
    statuses: RwLock<BTreeMap<Kind, Arc<Statuses>>>,
}

impl Shared {
    /// What an operator begins with.
    pub fn new(
        cluster: Cluster,
        permits: Permits,
        execution: Execution,
        metrics: Metrics,
        events: Events,
        queue: Queue,
    ) -> Self {
        let env = cluster.env().clone();
        Self {
            started: env.instant(),
            watchdog: Watchdog::new(&env),
            env,
            cluster,
            permits,
            execution,
            metrics,
            events,
            health: Health::default(),
            memories: Memories::default(),
            object_checks: tokio::sync::Mutex::default(),
            bell: Notify::new(),
            queue: Mutex::new(queue),
            index: Mutex::default(),
            writes: Mutex::default(),
            modules: RwLock::default(),
            modules_known: AtomicBool::new(false),
            statuses: RwLock::default(),
        }
    }

    /// The queue's time: since the start.
    pub fn elapsed(&self) -> Duration {
        self.env.instant().duration_since(self.started)
    }

    /// The queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who read what.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of a key begins: changes from here on count for it, until it is recorded or dropped.
    pub fn begin(&self, work: &Work) -> Beginning<'_> {
        Beginning { begun: Some(self.index().begin(work)), shared: self }
    }

    /// Whose writes changes are.
    pub fn writes(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module as it serves now.
    pub fn module(&self, name: &str) -> Option<Arc<Running>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All modules that serve, in order.
    pub fn modules(&self) -> Vec<Arc<Running>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// From now on a module serves like this: all its primaries are run.
    pub fn serve(&self, running: &Arc<Running>) {
        let name = running.name().clone();
        self.queue().set_rate(&name, running.settings().writes_per_second);
        self.health.swapped(&name);
        self.modules.write().unwrap_or_else(PoisonError::into_inner).insert(name, running.clone());
        self.wake_primaries(running, &Cause::Serves);
    }

    /// From now on a module does not serve.
    pub fn stop(&self, name: &str) {
        self.modules.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.queue().forget_module(name);
        self.index().forget_module(name);
        self.memories.forget_module(name);
        self.health.forget_module(name);
        self.events.forget_reporter(name);
    }

    /// The modules have been listed.
    pub fn know_modules(&self) {
        self.modules_known.store(true, Ordering::Release);
    }

    /// Whether the modules have been listed.
    pub fn modules_are_known(&self) -> bool {
        self.modules_known.load(Ordering::Acquire)
    }

    /// What the CustomResourceDefinition of a kind says of its statuses.
    pub fn statuses(&self, kind: &Kind) -> Arc<Statuses> {
        let statuses = self.statuses.read().unwrap_or_else(PoisonError::into_inner);
        statuses.get(kind).cloned().unwrap_or_default()
    }

    /// Notes what the CustomResourceDefinition of a kind says of its statuses. If they can
    /// be written from now on, they are.
    pub fn set_statuses(&self, kind: Kind, statuses: Statuses) {
        let appears = *self.statuses(&kind) == Statuses::Absent && statuses != Statuses::Absent;
        let readers = self.modules().into_iter().filter(|one| appears && *one.primary == kind);
        let readers: Vec<_> = readers.collect();
        let mut known = self.statuses.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind, Arc::new(statuses));
        drop(known);
        for running in readers {
            self.wake_primaries(&running, &Cause::Statuses);
        }
    }

    /// Whether the write rate lets a module make a further write for a key that is worked on.
    pub fn may_write(&self, work: &Work) -> bool {
        self.queue().may_write(work, self.elapsed())
    }

    /// A module has written something for a key: it counts, and counts towards the rate of the module
    /// and of the key's namespace.
    pub fn count_write(&self, work: &Work, verb: &str) {
        self.metrics.wrote(&work.module, verb);
        self.queue().wrote(work, self.elapsed());
    }

    /// Runs one key.
    pub fn wake(&self, work: &Work, cause: &Cause) {
        self.queue().wake(work, cause);
        self.bell.notify_one();
    }

    /// Runs all primaries of a module.
    pub fn wake_primaries(&self, running: &Running, cause: &Cause) {
        let primaries = running.primaries();
        let mut queue = self.queue();
        for primary in primaries {
            let work = Work { module: running.name().clone(), key: primary.key.clone() };
            queue.wake(&work, cause);
        }
        drop(queue);
        self.bell.notify_one();
    }
}

/// A run under way; abandoned when it is dropped without having been recorded, also by a panic.
pub struct Beginning<'a> {
    shared: &'a Shared,
    begun: Option<Begun>,
}

impl Beginning<'_> {
    /// The run ended and read this: see [`Index::record`].
    pub fn record(mut self, work: &Work, record: ReadRecord, bytes_max: usize) -> bool {
        let Some(begun) = self.begun.take() else { return false };
        self.shared.index().record(work, begun, record, bytes_max)
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.shared.index().abandon(begun);
        }
    }
}

/// Wakes keys when caches change, and tells the supervisor what concerns modules.
pub struct Waker {
    /// The keys.
    pub shared: Arc<Shared>,
    /// The supervisor.
    pub supervisor: mpsc::UnboundedSender<Happened>,
}

impl Listener for Waker {
    fn changed(&self, change: &CacheChange) {
        let shared = &self.shared;
        if let Some(happened) = sources::meaning(change) {
            let _ = self.supervisor.send(happened);
        }
        let writer = match (&change.after, &change.before) {
            (Some(object), _) => shared.writes().writer(object).cloned(),
            (None, Some(object)) => shared.writes().deleter(&object.uid).cloned(),
            (None, None) => None,
        };
        let key: Key = change.key.clone();
        let cause = Cause::change(change);
        let change = Arc::new(Change {
            kind: change.kind.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            writer,
        });
        let mut woken = shared.index().changed(&change);
        for running in shared.modules() {
            if running.primary == change.kind {
                woken.insert(Work { module: running.name().clone(), key: key.clone() });
            }
            if change.after.is_none() && running.dropped().contains(&change.kind) {
                let module = running.name().to_string();
                let _ = self.supervisor.send(Happened::MayBeGone(module));
            }
        }
        if let Some(writer) = &change.writer {
            woken.remove(writer);
        }
        if !woken.is_empty() {
            let mut queue = shared.queue();
            for work in &woken {
                queue.wake(work, &cause);
            }
            drop(queue);
            shared.bell.notify_one();
        }
    }

    fn state_changed(&self, change: &StateChange) {
        let happened = if &*change.module == HOST_MODULE {
            tracing::info!(kind = %change.kind, state = ?change.state, "the host reads");
            if *change.kind == *CONFIG_MAP && change.state == KindState::Synced {
                // What changed while nothing was watched is not told one by one.
                let _ = self.supervisor.send(Happened::SourcesChanged);
            }
            if *change.kind == crd::kind() {
                Happened::DefinitionsChanged
            } else {
                Happened::PlaceChanged
            }
        } else {
            Happened::State(change.module.to_string())
        };
        let _ = self.supervisor.send(happened);
        if let Some(running) = self.shared.module(&change.module) {
            self.shared.wake_primaries(&running, &Cause::Readable(change.kind.clone()));
        }
    }
}

/// Notes a write of a key and tells the caches.
pub fn wrote(shared: &Shared, caches: &Caches, target: &Target, object: Object, writer: &Work) {
    shared.writes().note(&object, writer);
    caches.wrote(&target.kind, &Arc::new(object));
}
