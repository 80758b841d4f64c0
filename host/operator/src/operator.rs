//! The operator: assembles its parts, runs, and stops.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper_cluster::events::Events;
use innkeeper_cluster::{Caches, Cluster, KindState, Task};
use innkeeper_contract::{Condition, Kind};
use innkeeper_modules::Driver;
use innkeeper_sandbox::{CacheFigures, Engine, Limits};
use tokio::sync::{Notify, mpsc, watch};

use crate::guest_calls::GuestCalls;
use crate::host_facts::{HostFacts, HostNamespaces};
use crate::metrics::Metrics;
use crate::modules::cluster_source::ClusterSource;
use crate::modules::directory_source::DirectorySource;
use crate::modules::event::SupervisorEvent;
use crate::modules::source::ModuleSource;
use crate::modules::supervisor::{Supervisor, SupervisorHost};
use crate::modules::supervisor_report::SupervisorReport;
use crate::policies::{AdmissionSettings, Handover, PolicyAudit, PolicyLeader, ReplicaPolicies};
use crate::queue::backoff::Backoff;
use crate::queue::workers;
use crate::queue::{self, Queue};
use crate::shared::Shared;
use crate::watch::cache_events::CacheEventHandler;

/// The default number of primaries that are reconciled at once. Each has one request to the API
/// server at a time: with more of them the API server only queues requests.
pub const WORKERS_DEFAULT: usize = 8;

/// Where the Modules are.
#[derive(Clone, Debug)]
pub enum ModulesLocation {
    /// Module objects of the API server.
    Cluster,
    /// Manifests in a directory, scanned every 250 ms.
    Directory(PathBuf),
    /// Manifests in a directory, scanned only when the one who writes them notifies: for tests,
    /// whose virtual time would otherwise advance in steps of 250 ms.
    DirectoryWithNotice(PathBuf, Arc<Notify>),
    /// Manifests in a directory, for a namespaced host.
    Mounted(PathBuf, HostNamespaces),
}

/// How much the operator does at once.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Primaries that are reconciled at once.
    pub workers: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { workers: WORKERS_DEFAULT }
    }
}

/// Leaves workers for other modules, and for other namespaces of a module.
fn queue_bounds(workers: usize) -> queue::Bounds {
    let per_module = (workers.div_ceil(4) * 3).min(workers.saturating_sub(1)).max(1);
    queue::Bounds {
        running: workers,
        running_per_module: per_module,
        running_per_tenant: per_module.saturating_sub(1).max(1),
    }
}

/// A module as the operator reports it.
#[derive(Clone, Debug)]
pub struct ReportedModule {
    /// The name of the Module.
    pub name: String,
    /// The kind that the active revision reconciles; `None` if no revision is active.
    pub primary: Option<Kind>,
    /// The conditions of the Module.
    pub conditions: Vec<Condition>,
}

/// A host of modules. Cheap to clone; [`Operator::run`] runs it.
#[derive(Clone)]
pub struct Operator {
    shared: Arc<Shared>,
    /// What the supervisor shows.
    supervisor: Arc<SupervisorReport>,
    cluster: Cluster,
    host: HostFacts,
    policies: ReplicaPolicies,
    caches: Caches,
    engine: Engine,
    from: ModulesLocation,
    outbox: mpsc::UnboundedSender<SupervisorEvent>,
    inbox: Arc<std::sync::Mutex<Option<mpsc::UnboundedReceiver<SupervisorEvent>>>>,
    admission: Option<AdmissionSettings>,
}

impl Operator {
    /// An operator that connects to a cluster and runs guests in an engine. `policies` are those of
    /// the process. `instance` names this host in Events: the name of the Pod or of the machine.
    ///
    /// To be called within a tokio runtime; sends no request yet.
    ///
    /// # Errors
    /// If the metrics cannot be registered.
    pub fn new(
        cluster: Cluster,
        engine: Engine,
        from: ModulesLocation,
        bounds: Bounds,
        policies: ReplicaPolicies,
        instance: &str,
    ) -> Result<Self, prometheus::Error> {
        let env = cluster.env().clone();
        let workers = bounds.workers.max(1);
        let queue = Queue::new(queue_bounds(workers), Backoff::default());
        let host = match &from {
            ModulesLocation::Mounted(_, namespaces) => HostFacts::within(namespaces.clone()),
            ModulesLocation::Cluster
            | ModulesLocation::Directory(_)
            | ModulesLocation::DirectoryWithNotice(..) => HostFacts::default(),
        };
        let shared = Arc::new(Shared::new(
            env.clone(),
            GuestCalls::new(engine.permits().clone(), policies.execution()),
            Metrics::new()?,
            Events::new(env.clone(), instance),
            queue,
        ));
        let supervisor = Arc::new(SupervisorReport::new(&env));
        let (outbox, inbox) = mpsc::unbounded_channel();
        let handler =
            CacheEventHandler { shared: Arc::downgrade(&shared), supervisor: outbox.clone() };
        let caches = Caches::new(env, Arc::new(handler));
        let inbox = Arc::new(std::sync::Mutex::new(Some(inbox)));
        Ok(Self {
            shared,
            supervisor,
            cluster,
            host,
            policies,
            caches,
            engine,
            from,
            outbox,
            inbox,
            admission: None,
        })
    }

    /// The same operator, which also leads the policies of its replicas: it keeps their
    /// certificates and the webhook configurations. A host of a folder leads none: no Module in the
    /// cluster could own a webhook configuration.
    #[must_use]
    pub fn with_admission(self, settings: AdmissionSettings) -> Self {
        let leads = matches!(self.from, ModulesLocation::Cluster);
        Self { admission: leads.then_some(settings), ..self }
    }

    /// Also runs guests for changes of fields that they do not read. For a guest that reports fewer
    /// fields than it reads, and to find one.
    pub fn wake_for_every_field(&self) {
        self.shared.index().read_every_field();
    }

    /// Runs until `stop` is true or its sender is dropped: then running reconciles finish, and no
    /// further one starts.
    ///
    /// A second call returns at once: an operator runs once.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let inbox = self.inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(inbox) = inbox else { return };
        let env = self.shared.env.clone();
        let directory = |path: &Path| DirectorySource::new(path, env.clone());
        let place = match &self.from {
            ModulesLocation::Cluster => {
                ModuleSource::Cluster(Box::new(ClusterSource::new(self.cluster.clone())))
            }
            ModulesLocation::Directory(path) | ModulesLocation::Mounted(path, _) => {
                ModuleSource::Directory(Box::new(directory(path)))
            }
            ModulesLocation::DirectoryWithNotice(path, notice) => {
                ModuleSource::Directory(Box::new(directory(path).scanned_on(notice.clone())))
            }
        };
        let kind = match &place {
            ModuleSource::Cluster(_) => innkeeper_modules::SourceKind::Cluster,
            ModuleSource::Directory(_) => innkeeper_modules::SourceKind::Directory,
        };
        let supervisor = Supervisor::new(
            self.supervisor_host(),
            Driver::new(kind, Limits::default())
                .in_namespace(self.cluster.host().host_namespace())
                .limited_to(self.host.primary_namespaces()),
            (place, self.handover()),
            self.outbox.clone(),
            inbox,
        );
        let supervising = env.spawn("supervise", {
            let (report, stop) = (self.supervisor.clone(), stop.clone());
            async move { Box::pin(report.liveness.watch(supervisor.supervise(stop))).await }
        });
        let leading = self.lead_policies(&stop);
        let auditing = self.audit_policies(&stop);
        workers::run_workers(self.shared.clone(), self.caches.clone(), stop).await;
        supervising.await;
        for task in [leading, auditing].into_iter().flatten() {
            task.await;
        }
        self.close();
    }

    fn supervisor_host(&self) -> SupervisorHost {
        SupervisorHost {
            shared: self.shared.clone(),
            report: self.supervisor.clone(),
            cluster: self.cluster.clone(),
            facts: self.host.clone(),
            replica: self.policies.clone(),
            caches: self.caches.clone(),
            engine: self.engine.clone(),
            is_leading_policies: self.admission.is_some(),
        }
    }

    /// Starts to lead the policies, if the operator is to.
    fn lead_policies(&self, stop: &watch::Receiver<bool>) -> Option<Task<()>> {
        let settings = self.admission.clone()?;
        let outbox = self.outbox.clone();
        let publish = Box::new(move |module: &str, state| {
            let module = module.to_owned();
            let _ = outbox.send(SupervisorEvent::PolicyStateChanged { module, state });
        });
        let host = self.cluster.host();
        let leader = PolicyLeader::new(host, settings, publish);
        Some(self.shared.env.spawn("lead policies", leader.lead(stop.clone())))
    }

    /// Starts to review existing objects, if the operator leads policies.
    fn audit_policies(&self, stop: &watch::Receiver<bool>) -> Option<Task<()>> {
        self.admission.as_ref()?;
        let outbox = self.outbox.clone();
        let publish = Box::new(move |module: &str, state| {
            let module = module.to_owned();
            let _ = outbox.send(SupervisorEvent::PolicyAuditChanged { module, state });
        });
        let host = self.cluster.host();
        let permits = self.engine.permits().clone();
        let audit = PolicyAudit::new(host, self.policies.clone(), permits, publish);
        Some(self.shared.env.spawn("audit policies", audit.audit(stop.clone())))
    }

    /// How a decided policy reaches the replicas.
    fn handover(&self) -> Handover {
        match self.from {
            ModulesLocation::Cluster => Handover::Records,
            ModulesLocation::Directory(_)
            | ModulesLocation::DirectoryWithNotice(..)
            | ModulesLocation::Mounted(..) => Handover::InProcess,
        }
    }

    /// Drops all active revisions, and with them their watches, while clones of the operator exist:
    /// for a caller that dropped [`Operator::run`] before it ended.
    pub fn close(&self) {
        // Those of the process outlive the operator, and have views of its caches.
        if self.handover() == Handover::InProcess {
            self.policies.active().clear();
        }
        for running in self.shared.modules() {
            self.shared.deactivate(running.name());
        }
    }

    /// Whether the Modules are listed, and every active revision can read the kinds that it
    /// declares, or it is known why it cannot: the operator reconciles from then on.
    pub fn is_ready(&self) -> bool {
        self.supervisor.is_listed()
            && self.shared.modules().iter().all(|running| {
                !running.view.states().values().any(|state| matches!(state, KindState::Syncing))
            })
    }

    /// In which step the supervisor of modules hangs, as a text; `None` if it does not. A hanging
    /// supervisor loads, reports and stops no module, and only a restart of the process helps.
    pub fn stalled(&self) -> Option<String> {
        self.supervisor.liveness.stalled()
    }

    /// The names of the modules with an active revision, or with a policy on this replica, in
    /// order.
    pub fn serving(&self) -> Vec<String> {
        let reconcile = self.shared.modules().into_iter().map(|running| running.name().clone());
        let review = self.policies.active().ids().into_keys();
        let all: BTreeSet<Arc<str>> = reconcile.chain(review).collect();
        all.iter().map(ToString::to_string).collect()
    }

    /// The modules with the conditions that the operator last reported, by name. A Module of a
    /// folder has no status: this is the only place of its conditions.
    pub fn modules(&self) -> Vec<ReportedModule> {
        let reported = self.supervisor.conditions();
        let modules = reported.into_iter().map(|(name, conditions)| {
            let primary = self.shared.module(&name).map(|active| Kind::clone(&active.primary_kind));
            ReportedModule { name, primary, conditions }
        });
        modules.collect()
    }

    /// Whether the operator has nothing to do now.
    pub fn is_quiet(&self) -> bool {
        self.shared.queue().is_quiet(self.shared.elapsed())
    }

    /// Whether a reconcile that failed waits for its next try.
    pub fn waits_for_retry(&self) -> bool {
        self.shared.queue().waits_for_retry()
    }

    /// The number of objects whose Events the host remembers, until the object or the module is
    /// gone.
    pub fn remembered_events(&self) -> usize {
        self.shared.events.remembered_objects()
    }

    /// The metrics in Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.shared.measure();
        let metrics = &self.shared.metrics;
        metrics.cache_objects.reset();
        metrics.cache_bytes.reset();
        for size in self.caches.sizes() {
            let resource = size.kind.resource();
            let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
            metrics.cache_objects.with_label_values(&[&resource]).add(count(size.objects));
            metrics.cache_bytes.with_label_values(&[&resource]).add(count(size.bytes));
        }
        if let Some(cache) = self.engine.cache() {
            let CacheFigures { hits, misses, refused, stored, evicted } = cache.figures();
            metrics.code_cache.reset();
            for (result, count) in [
                ("hit", hits),
                ("miss", misses),
                ("refused", refused),
                ("stored", stored),
                ("evicted", evicted),
            ] {
                metrics.code_cache.with_label_values(&[result]).inc_by(count);
            }
        }
        metrics.text() + &self.policies.metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::queue_bounds;

    #[test]
    fn workers_are_left_for_other_modules_and_other_namespaces() {
        let bounds = |workers| {
            let bounds = queue_bounds(workers);
            (bounds.running, bounds.running_per_module, bounds.running_per_tenant)
        };
        assert_eq!(bounds(1), (1, 1, 1));
        assert_eq!(bounds(2), (2, 1, 1));
        assert_eq!(bounds(4), (4, 3, 2));
        assert_eq!(bounds(8), (8, 6, 5));
        assert_eq!(bounds(32), (32, 24, 23));
    }
}
