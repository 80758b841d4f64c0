//! The state that the reconciles of one operator share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use innkeeper_cluster::Env;
use innkeeper_cluster::events::Events;
use innkeeper_contract::Kind;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::guest_calls::GuestCalls;
use crate::metrics::Metrics;
use crate::modules::crds::StatusSchema;
use crate::modules::health::{Health, RunOutcome};
use crate::modules::open_revision::OpenRevision;
use crate::queue::trigger::Trigger;
use crate::queue::{Queue, ReconcileRequest, ReconcileResult};
use crate::reconcile::primary_state::{PrimaryState, PrimaryStates};
use crate::watch::dependency_index::{DependencyIndex, RunStart};
use crate::watch::own_writes::OwnWrites;
use crate::watch::read_record::ReadRecord;
use crate::watch::read_scope::Unread;

/// The state that the reconciles of one operator share, with each other and with its supervisor.
pub struct Shared {
    /// The clock, randomness, and tasks.
    pub env: Env,
    /// Runs guests.
    pub guest_calls: GuestCalls,
    /// Publishes Events.
    pub events: Events,
    /// The metrics.
    pub metrics: Metrics,
    /// Which primaries of each module fail.
    pub health: Health,
    /// Notified when there may be work.
    notify: Notify,
    started: Instant,
    queue: Mutex<Queue>,
    index: Mutex<DependencyIndex>,
    writes: Mutex<OwnWrites>,
    primary_states: PrimaryStates,
    modules: RwLock<BTreeMap<Arc<str>, Arc<OpenRevision>>>,
    status_schemas: RwLock<BTreeMap<Kind, Arc<StatusSchema>>>,
}

impl Shared {
    /// The state of an operator that has just started.
    pub fn new(
        env: Env,
        guest_calls: GuestCalls,
        metrics: Metrics,
        events: Events,
        queue: Queue,
    ) -> Self {
        Self {
            started: env.instant(),
            env,
            guest_calls,
            metrics,
            events,
            health: Health::default(),
            notify: Notify::new(),
            queue: Mutex::new(queue),
            index: Mutex::default(),
            writes: Mutex::default(),
            primary_states: PrimaryStates::default(),
            modules: RwLock::default(),
            status_schemas: RwLock::default(),
        }
    }

    /// The time since the start, which the queue uses.
    pub fn elapsed(&self) -> Duration {
        self.env.instant().duration_since(self.started)
    }

    /// The queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which request read what.
    pub fn index(&self) -> MutexGuard<'_, DependencyIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run of a request: changes from here on concern it, until it is recorded or dropped.
    pub fn begin_run(&self, request: &ReconcileRequest) -> RunGuard<'_> {
        RunGuard { start: Some(self.index().begin(request)), shared: self }
    }

    /// Which request made which write.
    pub fn writes(&self) -> MutexGuard<'_, OwnWrites> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The active revision of a module.
    pub fn module(&self, name: &str) -> Option<Arc<OpenRevision>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The active revisions of all modules, in order of their names.
    pub fn modules(&self) -> Vec<Arc<OpenRevision>> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Makes a revision the active one, and queues all its primaries.
    pub fn activate(&self, active: &Arc<OpenRevision>) {
        let name = active.name().clone();
        self.queue().set_rate(&name, active.spec().writes_per_second);
        self.health.reset(&name);
        let mut modules = self.modules.write().unwrap_or_else(PoisonError::into_inner);
        modules.insert(name, active.clone());
        drop(modules);
        // The fields that its runs read are yet to be learned.
        self.index().forget_fields(active.name());
        self.wake_primaries(active, &Trigger::RevisionActive);
    }

    /// Removes the active revision of a module, and forgets all that is kept of its primaries.
    pub fn deactivate(&self, name: &str) {
        self.modules.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.queue().forget_module(name);
        self.index().forget_module(name);
        self.writes().forget_module(name);
        self.primary_states.forget_module(name);
        self.health.forget_module(name);
        self.events.forget_reporter(name);
    }

    /// Takes what the host remembers of a primary, for a reconcile; an empty state if there is
    /// none.
    pub fn take_primary_state(&self, request: &ReconcileRequest) -> PrimaryState {
        self.primary_states.take(request)
    }

    /// Keeps what the host remembers of a primary for its next reconcile, if its module is still
    /// active.
    pub fn keep_primary_state(&self, request: &ReconcileRequest, state: PrimaryState) {
        self.primary_states.put(request, state);
        self.forget_if_stopped(request);
    }

    /// A copy of what the host remembers of a primary; empty if there is nothing, or while it is
    /// reconciled.
    pub fn primary_state(&self, request: &ReconcileRequest) -> PrimaryState {
        self.primary_states.peek(request)
    }

    /// Whether the last round of a primary found every object as desired, and nothing has woken the
    /// primary since.
    pub fn is_in_sync(&self, request: &ReconcileRequest, uid: &str) -> bool {
        self.primary_states.was_in_sync(request, uid) && !self.queue().is_pending(request)
    }

    /// Forgets a primary that is gone; `uid` is the last that it had.
    pub fn forget_primary(&self, request: &ReconcileRequest, uid: &str) {
        self.index().forget(request);
        if self.module(&request.module).is_some() {
            self.health.record(request, RunOutcome::default());
        }
        self.events.forget(&request.module, uid);
        self.forget_if_stopped(request);
    }

    /// Forgets a reconcile during which its module stopped: [`Shared::deactivate`] forgot the
    /// module before the end of the reconcile was recorded.
    fn forget_if_stopped(&self, request: &ReconcileRequest) {
        if self.module(&request.module).is_none() {
            self.index().forget(request);
            self.primary_states.take(request);
        }
    }

    /// Sets the gauges of the queue, of the recorded reads, and of the update groups.
    pub fn measure(&self) {
        let gauge = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let metrics = &self.metrics;
        for (module, depth) in self.queue().depths() {
            metrics.depth.with_label_values(&[module, module]).set(gauge(depth));
        }
        metrics.recorded_read_bytes.reset();
        for (module, bytes) in self.index().bytes() {
            metrics.recorded_read_bytes.with_label_values(&[module]).set(gauge(bytes));
        }
        metrics.outdated_objects.reset();
        for (module, objects) in self.primary_states.outdated() {
            metrics.outdated_objects.with_label_values(&[&*module]).set(gauge(objects));
        }
    }

    /// The schema of a kind's status in its CustomResourceDefinition.
    pub fn status_schema(&self, kind: &Kind) -> Arc<StatusSchema> {
        let statuses = self.status_schemas.read().unwrap_or_else(PoisonError::into_inner);
        statuses.get(kind).cloned().unwrap_or_default()
    }

    /// Sets the schema of a kind's status. If the status becomes writable, all primaries of the
    /// kind run.
    pub fn set_status_schema(&self, kind: Kind, statuses: StatusSchema) {
        let appears =
            *self.status_schema(&kind) == StatusSchema::Absent && statuses != StatusSchema::Absent;
        let readers = self.modules().into_iter().filter(|one| appears && *one.primary_kind == kind);
        let readers: Vec<_> = readers.collect();
        let mut known = self.status_schemas.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(kind, Arc::new(statuses));
        drop(known);
        for active in readers {
            self.wake_primaries(&active, &Trigger::StatusWritable);
        }
    }

    /// Whether the write rate allows one more write for a running request.
    pub fn may_write(&self, request: &ReconcileRequest) -> bool {
        self.queue().may_write(request, self.elapsed())
    }

    /// Counts a write for a running request, in the metrics and towards the write rate of its
    /// module and namespace.
    pub fn count_write(&self, request: &ReconcileRequest, verb: &str) {
        self.metrics.wrote(&request.module, verb);
        self.queue().wrote(request, self.elapsed());
    }

    /// Queues one primary.
    pub fn wake(&self, request: &ReconcileRequest, trigger: &Trigger) {
        self.queue().wake(request, trigger);
        self.notify.notify_one();
    }

    /// Queues some primaries.
    pub fn wake_all(&self, requests: &BTreeSet<ReconcileRequest>, trigger: &Trigger) {
        if requests.is_empty() {
            return;
        }
        let mut queue = self.queue();
        for request in requests {
            queue.wake(request, trigger);
        }
        drop(queue);
        self.notify.notify_one();
    }

    /// Ends the turn of a primary: `jitter` in 0..1 varies a backoff.
    pub fn done(&self, request: &ReconcileRequest, result: ReconcileResult, jitter: f64) {
        self.queue().done(request, result, self.elapsed(), jitter);
        self.notify.notify_one();
    }

    /// Waits until there may be work in the queue.
    pub async fn notified(&self) {
        self.notify.notified().await;
    }

    /// Queues all primaries of a module.
    pub fn wake_primaries(&self, active: &OpenRevision, trigger: &Trigger) {
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

/// A run that has begun. A drop without a record, also by a panic, abandons it.
pub struct RunGuard<'a> {
    shared: &'a Shared,
    start: Option<RunStart>,
}

impl RunGuard<'_> {
    /// Ends the run of a revision with the record of its reads: see [`DependencyIndex::record`].
    pub fn record(
        mut self,
        request: &ReconcileRequest,
        revision: &OpenRevision,
        record: ReadRecord,
    ) -> bool {
        let Some(start) = self.start.take() else { return false };
        let bytes_max = revision.spec().recorded_read_bytes;
        self.shared.index().record(request, start, record, bytes_max, |change, reported| {
            let unread = |both| Unread::of(revision, &change.kind, both, reported);
            change.both().map_or_else(Unread::default, unread)
        })
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start.take() {
            self.shared.index().abandon(start);
        }
    }
}
