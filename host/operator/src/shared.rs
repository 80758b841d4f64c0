//! The state that all parts of one operator share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use innkeeper_cluster::events::Events;
use innkeeper_cluster::{Cluster, Env};
use innkeeper_contract::{Condition, Kind};
use innkeeper_sandbox::Permits;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::execution::Execution;
use crate::host_facts::HostFacts;
use crate::metrics::Metrics;
use crate::modules::crds::StatusSchema;
use crate::modules::health::Health;
use crate::modules::liveness::SupervisorLiveness;
use crate::modules::open_revision::OpenRevision;
use crate::policies::{AuditState, PolicyState, ReplicaPolicies};
use crate::queue::trigger::Trigger;
use crate::queue::{Queue, ReconcileRequest, ReconcileResult};
use crate::reconcile::primary_state::PrimaryStates;
use crate::watch::dependency_index::{DependencyIndex, RunStart};
use crate::watch::own_writes::OwnWrites;
use crate::watch::read_record::ReadRecord;

/// The state that all parts of one operator share.
pub struct Shared {
    /// The clock, randomness, and tasks.
    pub env: Env,
    /// Facts about the host.
    pub host: HostFacts,
    /// The connections to the API server.
    pub cluster: Cluster,
    /// The permits for calls of guests.
    pub permits: Permits,
    /// On which thread guests run.
    pub execution: Execution,
    /// The policies of this process, which outlive the operator.
    pub policies: ReplicaPolicies,
    /// Publishes Events.
    pub events: Events,
    /// The metrics.
    pub metrics: Metrics,
    /// Which primaries of each module fail.
    pub health: Health,
    /// Whether the supervisor makes progress.
    pub liveness: SupervisorLiveness,
    /// What is known of each primary from its rounds before.
    pub primary_states: PrimaryStates,
    /// Held during a check of a definition's stored objects: one check at a time, of all modules.
    pub object_checks: tokio::sync::Mutex<()>,
    /// Notified when there may be work.
    notify: Notify,
    started: Instant,
    queue: Mutex<Queue>,
    index: Mutex<DependencyIndex>,
    writes: Mutex<OwnWrites>,
    modules: RwLock<BTreeMap<Arc<str>, Arc<OpenRevision>>>,
    modules_listed: AtomicBool,
    status_schemas: RwLock<BTreeMap<Kind, Arc<StatusSchema>>>,
    module_conditions: Mutex<BTreeMap<String, Vec<Condition>>>,
    policy_states: Mutex<BTreeMap<String, PolicyState>>,
    policy_audits: Mutex<BTreeMap<String, AuditState>>,
}

impl Shared {
    /// The state of an operator that has just started.
    pub fn new(
        host: HostFacts,
        cluster: Cluster,
        permits: Permits,
        policies: ReplicaPolicies,
        metrics: Metrics,
        events: Events,
        queue: Queue,
    ) -> Self {
        let env = cluster.env().clone();
        Self {
            started: env.instant(),
            liveness: SupervisorLiveness::new(&env),
            env,
            host,
            cluster,
            permits,
            execution: policies.execution(),
            policies,
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
            modules_listed: AtomicBool::new(false),
            status_schemas: RwLock::default(),
            module_conditions: Mutex::default(),
            policy_states: Mutex::default(),
            policy_audits: Mutex::default(),
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
        self.modules.write().unwrap_or_else(PoisonError::into_inner).insert(name, active.clone());
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

    /// The conditions that the supervisor last reported of each module, also of one that is not
    /// active.
    pub fn module_conditions(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Condition>>> {
        self.module_conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the leader knows of the policy of each module that has one.
    pub fn policy_states(&self) -> MutexGuard<'_, BTreeMap<String, PolicyState>> {
        self.policy_states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the audit of the policy of each module has found.
    pub fn policy_audits(&self) -> MutexGuard<'_, BTreeMap<String, AuditState>> {
        self.policy_audits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the modules have been listed.
    pub fn mark_modules_listed(&self) {
        self.modules_listed.store(true, Ordering::Release);
    }

    /// Whether the modules have been listed.
    pub fn modules_are_listed(&self) -> bool {
        self.modules_listed.load(Ordering::Acquire)
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
    /// Ends the run with the record of its reads: see [`DependencyIndex::record`].
    pub fn record(
        mut self,
        request: &ReconcileRequest,
        record: ReadRecord,
        bytes_max: usize,
    ) -> bool {
        let Some(start) = self.start.take() else { return false };
        self.shared.index().record(request, start, record, bytes_max)
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start.take() {
            self.shared.index().abandon(start);
        }
    }
}
