//! What the rooms of one operator share, and how changes wake keys.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::events::Events;
use innkeeper_cluster::{Caches, Change as CacheChange, Cluster, Env, KindState, Listener, crd};
use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey, ObjectRef};
use innkeeper_sandbox::Permits;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::modules::active_module::ActiveModule;
use crate::modules::crds::StatusSchema;
use crate::modules::event::{self, CONFIG_MAP, HOST_MODULE, SupervisorEvent};
use crate::modules::health::Health;
use crate::modules::liveness::SupervisorLiveness;
use crate::primary_state::PrimaryStates;
use crate::queue::{Queue, ReconcileRequest};
use crate::reads::{Change, DependencyIndex, RunStart};
use crate::record::ReadRecord;
use crate::trigger::Trigger;
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
    /// Whether the supervisor makes progress.
    pub liveness: SupervisorLiveness,
    /// What is known of each primary from its rounds before.
    pub primary_states: PrimaryStates,
    /// Held while stored objects of a definition are checked: one check at a time over all modules.
    pub object_checks: tokio::sync::Mutex<()>,
    /// Rings when there may be work.
    pub notify: Notify,
    started: Instant,
    queue: Mutex<Queue>,
    index: Mutex<DependencyIndex>,
    writes: Mutex<Writes>,
    modules: RwLock<BTreeMap<Arc<str>, Arc<ActiveModule>>>,
    modules_known: AtomicBool,
    status_schemas: RwLock<BTreeMap<Kind, Arc<StatusSchema>>>,
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
            liveness: SupervisorLiveness::new(&env),
            env,
            cluster,
            permits,
            execution,
            metrics,
            events,
            health: Health::default(),
            primary_states: PrimaryStates::default(),
            object_checks: tokio::sync::Mutex::default(),
            notify: Notify::new(),
            queue: Mutex::new(queue),
            index: Mutex::default(),
            writes: Mutex::default(),
            modules: RwLock::default(),
            modules_known: AtomicBool::new(false),
            status_schemas: RwLock::default(),
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
    pub fn index(&self) -> MutexGuard<'_, DependencyIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of a key begins: changes from here on count for it, until it is recorded or dropped.
    pub fn begin_run(&self, request: &ReconcileRequest) -> RunGuard<'_> {
        RunGuard { start: Some(self.index().begin(request)), shared: self }
    }

    /// Whose writes changes are.
    pub fn writes(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module as it serves now.
    pub fn module(&self, name: &str) -> Option<Arc<ActiveModule>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All modules that serve, in order.
    pub fn modules(&self) -> Vec<Arc<ActiveModule>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// From now on a module serves like this: all its primaries are run.
    pub fn serve(&self, active: &Arc<ActiveModule>) {
        let name = active.name().clone();
        self.queue().set_rate(&name, active.settings().writes_per_second);
        self.health.reset(&name);
        self.modules.write().unwrap_or_else(PoisonError::into_inner).insert(name, active.clone());
        self.wake_primaries(active, &Trigger::RevisionActive);
    }

    /// From now on a module does not serve.
    pub fn stop(&self, name: &str) {
        self.modules.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.queue().forget_module(name);
        self.index().forget_module(name);
        self.primary_states.forget_module(name);
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
    pub fn status_schema(&self, kind: &Kind) -> Arc<StatusSchema> {
        let statuses = self.status_schemas.read().unwrap_or_else(PoisonError::into_inner);
        statuses.get(kind).cloned().unwrap_or_default()
    }

    /// Notes what the CustomResourceDefinition of a kind says of its statuses. If they can
    /// be written from now on, they are.
    pub fn set_status_schema(&self, kind: Kind, statuses: StatusSchema) {
        let appears =
            *self.status_schema(&kind) == StatusSchema::Absent && statuses != StatusSchema::Absent;
        let readers = self.modules().into_iter().filter(|one| appears && *one.primary == kind);
        let readers: Vec<_> = readers.collect();
        let mut known = self.status_schemas.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind, Arc::new(statuses));
        drop(known);
        for active in readers {
            self.wake_primaries(&active, &Trigger::StatusWritable);
        }
    }

    /// Whether the write rate lets a module make a further write for a key that is worked on.
    pub fn may_write(&self, request: &ReconcileRequest) -> bool {
        self.queue().may_write(request, self.elapsed())
    }

    /// A module has written something for a key: it counts, and counts towards the rate of the
    /// module and of the key's namespace.
    pub fn count_write(&self, request: &ReconcileRequest, verb: &str) {
        self.metrics.wrote(&request.module, verb);
        self.queue().wrote(request, self.elapsed());
    }

    /// Runs one key.
    pub fn wake(&self, request: &ReconcileRequest, trigger: &Trigger) {
        self.queue().wake(request, trigger);
        self.notify.notify_one();
    }

    /// Runs all primaries of a module.
    pub fn wake_primaries(&self, active: &ActiveModule, trigger: &Trigger) {
        let primaries = active.primaries();
        let mut queue = self.queue();
        for primary in primaries {
            let request =
                ReconcileRequest { module: active.name().clone(), key: primary.key.clone() };
            queue.wake(&request, trigger);
        }
        drop(queue);
        self.notify.notify_one();
    }
}

/// A run under way; abandoned when it is dropped without having been recorded, also by a panic.
pub struct RunGuard<'a> {
    shared: &'a Shared,
    start: Option<RunStart>,
}

impl RunGuard<'_> {
    /// The run ended and read this: see [`DependencyIndex::record`].
    pub fn record(
        mut self,
        request: &ReconcileRequest,
        record: ReadRecord,
        bytes_max: usize,
    ) -> bool {
        let Some(begun) = self.start.take() else { return false };
        self.shared.index().record(request, begun, record, bytes_max)
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.start.take() {
            self.shared.index().abandon(begun);
        }
    }
}

/// Wakes keys when caches change, and tells the supervisor what concerns modules.
pub struct CacheEventHandler {
    /// The keys.
    pub shared: Arc<Shared>,
    /// The supervisor.
    pub supervisor: mpsc::UnboundedSender<SupervisorEvent>,
}

impl Listener for CacheEventHandler {
    fn changed(&self, change: &CacheChange) {
        let shared = &self.shared;
        if let Some(event) = event::classify(change) {
            let _ = self.supervisor.send(event);
        }
        let writer = match (&change.after, &change.before) {
            (Some(object), _) => shared.writes().writer(object).cloned(),
            (None, Some(object)) => shared.writes().deleter(&object.uid).cloned(),
            (None, None) => None,
        };
        let key: ObjectKey = change.key.clone();
        let trigger = Trigger::change(change);
        let change = Arc::new(Change {
            kind: change.kind.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            writer,
        });
        let mut woken = shared.index().changed(&change);
        for active in shared.modules() {
            if active.primary == change.kind {
                woken.insert(ReconcileRequest { module: active.name().clone(), key: key.clone() });
            }
            if change.after.is_none() && active.dropped().contains(&change.kind) {
                let module = active.name().to_string();
                let _ = self.supervisor.send(SupervisorEvent::LeftoversChanged(module));
            }
        }
        if let Some(writer) = &change.writer {
            woken.remove(writer);
        }
        if !woken.is_empty() {
            let mut queue = shared.queue();
            for request in &woken {
                queue.wake(request, &trigger);
            }
            drop(queue);
            shared.notify.notify_one();
        }
    }

    fn state_changed(&self, change: &StateChange) {
        let event = if &*change.module == HOST_MODULE {
            tracing::info!(kind = %change.kind, state = ?change.state, "the host reads");
            if *change.kind == *CONFIG_MAP && change.state == KindState::Synced {
                // What changed while nothing was watched is not told one by one.
                let _ = self.supervisor.send(SupervisorEvent::SourcesChanged);
            }
            if *change.kind == crd::kind() {
                SupervisorEvent::DefinitionsChanged
            } else {
                SupervisorEvent::SourceStateChanged
            }
        } else {
            SupervisorEvent::ReadabilityChanged(change.module.to_string())
        };
        let _ = self.supervisor.send(event);
        if let Some(active) = self.shared.module(&change.module) {
            self.shared.wake_primaries(&active, &Trigger::ReadabilityChanged(change.kind.clone()));
        }
    }
}

/// Notes a write of a key and tells the caches.
pub fn record_write(
    shared: &Shared,
    caches: &Caches,
    object_ref: &ObjectRef,
    object: Object,
    writer: &ReconcileRequest,
) {
    shared.writes().note(&object, writer);
    caches.record_write(&object_ref.kind, &Arc::new(object));
}
