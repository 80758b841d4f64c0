//! The supervisor of modules: one task with one inbox, so that everything that happens to modules
//! happens in one order. Whatever waits (a compilation, a read, an installation) is a task of its
//! own, and its result returns as an event.
//!
//! The methods of [`Supervisor`] that carry out actions are in the files next to this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use innkeeper_cluster::{Caches, Cluster, Namespaces, Task, View, crd};
use innkeeper_modules::{Action, CrdGrant, Digest, Driver, Event, Input};
use innkeeper_sandbox::Engine;
use tokio::sync::{Mutex, Semaphore, mpsc, watch};

use super::account_access::AccountStates;
use super::event::{HOST_MODULE, SupervisorEvent};
use super::health::HealthChange;
use super::liveness::WAKE_PERIOD;
use super::open_revision::OpenRevision;
use super::policy_handovers::PolicyHandovers;
use super::retry_wait::RetryWait;
use super::schema_reads::SchemaReads;
use super::source::ModuleSource;
use super::status::ConditionHistory;
use super::supervisor_report::SupervisorReport;
use crate::host_facts::HostFacts;
use crate::policies::{ActivePolicy, Handover, ReplicaPolicies};
use crate::shared::Shared;

/// The number of components that are loaded at once. A module has at most one of them, so one that
/// takes long to compile does not delay the others; more would take the cores from active modules.
const LOADS_AT_ONCE: usize = 2;

/// What the operator gives its supervisor.
pub struct SupervisorHost {
    /// What the supervisor shares with reconciles.
    pub shared: Arc<Shared>,
    /// What the supervisor shows to other tasks of the operator.
    pub report: Arc<SupervisorReport>,
    /// The connections to the API server.
    pub cluster: Cluster,
    /// Facts about the host.
    pub facts: HostFacts,
    /// The policies of this process, which outlive the operator.
    pub replica: ReplicaPolicies,
    /// The caches.
    pub caches: Caches,
    /// What compiles and runs guests.
    pub engine: Engine,
    /// Whether this host leads the policies of its replicas.
    pub is_leading_policies: bool,
}

/// The task that owns the modules. Run it with [`Supervisor::supervise`].
pub struct Supervisor {
    pub(super) shared: Arc<Shared>,
    /// What other tasks of the operator see.
    pub(super) report: Arc<SupervisorReport>,
    pub(super) cluster: Cluster,
    pub(super) host: HostFacts,
    /// The policies of this process, which outlive the operator.
    pub(super) replica: ReplicaPolicies,
    pub(super) caches: Caches,
    pub(super) engine: Engine,
    pub(super) driver: Driver,
    pub(super) source: ModuleSource,
    inbox: mpsc::UnboundedReceiver<SupervisorEvent>,
    pub(super) outbox: mpsc::UnboundedSender<SupervisorEvent>,
    tasks: FuturesUnordered<Task<()>>,
    /// Permits of tasks.
    pub(super) limits: TaskLimits,
    /// The latest task of each kind and module; replacing one aborts the one before.
    pub(super) latest: LatestTasks,
    /// The revisions that rollbacks may need.
    pub(super) rollback: RollbackTargets,
    /// The accounts that modules act as.
    pub(super) accounts: AccountStates,
    /// The policies that were handed over to the replicas.
    pub(super) policies: PolicyHandovers,
    /// The waits before a module's next retry.
    pub(super) retries: BTreeMap<String, RetryWait>,
    /// The waits before deleted definitions of a module are installed again.
    pub(super) reinstalls: BTreeMap<String, RetryWait>,
    /// The host's view of CustomResourceDefinitions.
    pub(super) definitions: Option<View>,
    /// The reads of the schemas of statuses.
    pub(super) schema_reads: SchemaReads,
    /// The API groups with kinds that each module's last candidate declares otherwise than the API
    /// server serves them.
    pub(super) mismatched: BTreeMap<String, BTreeSet<String>>,
    /// The conditions that were reported of each module.
    pub(super) history: BTreeMap<String, ConditionHistory>,
    /// When the health of a module is reported that changed too often.
    health_due: Option<Duration>,
}

/// Permits of tasks.
pub(super) struct TaskLimits {
    /// Compilations.
    pub(super) loads: Arc<Semaphore>,
    /// Checks of parameters; their own permit, so that they do not wait for compilations.
    pub(super) parameter_checks: Arc<Semaphore>,
    /// A check of a definition's stored objects: one at a time, of all modules.
    pub(super) object_checks: Arc<Mutex<()>>,
    /// Installations of definitions, by module.
    pub(super) installations: BTreeMap<String, Installations>,
}

/// The installations of definitions of one module.
pub(super) struct Installations {
    /// One at a time.
    pub(super) install_lock: Arc<Semaphore>,
    /// What the present spec lets them write.
    pub(super) grant: watch::Sender<CrdGrant>,
}

/// The latest task of each kind and module. Dropping a task aborts it.
#[derive(Default)]
pub(super) struct LatestTasks {
    /// Checks of parameters, by module and component.
    pub(super) parameter_checks: BTreeMap<(String, Digest), Task<()>>,
    /// Reads of sources.
    pub(super) reads: BTreeMap<String, Task<()>>,
    /// Previews, and of which candidate.
    pub(super) previews: BTreeMap<String, (Digest, Task<()>)>,
    /// Runs of the previous revision on primaries that fail in the rollback window.
    pub(super) rollback_checks: BTreeMap<String, Task<()>>,
    /// The counts of failed reviews in rollback windows.
    pub(super) policy_windows: BTreeMap<String, Task<()>>,
}

/// The revisions that rollbacks may need.
#[derive(Default)]
pub(super) struct RollbackTargets {
    /// The revision that the last activation replaced, while the actions of one input are carried
    /// out.
    pub(super) replaced: Option<Arc<OpenRevision>>,
    /// The policy that this replica reviewed with before, as long.
    pub(super) replaced_policy: Option<Arc<ActivePolicy>>,
    /// The previous revision of each module in its rollback window.
    pub(super) previous: BTreeMap<String, Arc<OpenRevision>>,
}

impl Supervisor {
    /// A supervisor of the modules of `source`; `driver` decides about them.
    pub fn new(
        host: SupervisorHost,
        driver: Driver,
        (source, handover): (ModuleSource, Handover),
        outbox: mpsc::UnboundedSender<SupervisorEvent>,
        inbox: mpsc::UnboundedReceiver<SupervisorEvent>,
    ) -> Self {
        let SupervisorHost {
            shared,
            report,
            cluster,
            facts,
            replica,
            caches,
            engine,
            is_leading_policies,
        } = host;
        Self {
            shared,
            report,
            cluster,
            host: facts,
            replica,
            caches,
            engine,
            driver,
            source,
            inbox,
            outbox,
            tasks: FuturesUnordered::new(),
            limits: TaskLimits {
                loads: Arc::new(Semaphore::new(LOADS_AT_ONCE)),
                parameter_checks: Arc::new(Semaphore::new(1)),
                object_checks: Arc::default(),
                installations: BTreeMap::new(),
            },
            latest: LatestTasks::default(),
            rollback: RollbackTargets::default(),
            accounts: AccountStates::default(),
            policies: PolicyHandovers::new(handover, is_leading_policies),
            retries: BTreeMap::new(),
            reinstalls: BTreeMap::new(),
            definitions: None,
            schema_reads: SchemaReads::default(),
            mismatched: BTreeMap::new(),
            history: BTreeMap::new(),
            health_due: None,
        }
    }

    /// Supervises until `stop` changes.
    pub async fn supervise(mut self, mut stop: watch::Receiver<bool>) {
        let shared = self.shared.clone();
        // Definitions show which kinds are served, and what a status may hold.
        let host = self.cluster.host();
        self.definitions = self.host.reads_definitions().then(|| {
            self.caches.open_metadata(&host, HOST_MODULE, &[crd::kind()], &Namespaces::All)
        });
        self.source.begin(&self.caches, &self.outbox);
        loop {
            self.report.liveness.rest();
            tokio::select! {
                biased;
                _ = stop.changed() => return,
                Some(event) = self.inbox.recv() => self.take(event).await,
                Some(_) = self.tasks.next() => {}
                // This distinguishes a supervisor that is not woken from one that has nothing to
                // do.
                () = shared.env.sleep(WAKE_PERIOD) => {}
                () = shared.health.notify.notified() => self.take_health_changes().await,
            }
        }
    }

    async fn take(&mut self, event: SupervisorEvent) {
        self.report.liveness.begin("taking an event".to_owned());
        match event {
            SupervisorEvent::Input { module, input } => self.handle(&module, *input).await,
            SupervisorEvent::ModulesListed(names) => {
                let gone: Vec<String> = self
                    .driver
                    .names()
                    .filter(|name| !names.contains(*name))
                    .map(str::to_owned)
                    .collect();
                for name in gone {
                    self.handle(&name, Input::Gone).await;
                }
            }
            SupervisorEvent::AccountChanged(account) => self.account_changed(&account).await,
            SupervisorEvent::ComponentSourceChanged(source) => {
                for name in self.source.modules_of(&source) {
                    self.read_source(&name);
                }
            }
            SupervisorEvent::ComponentSourcesRelisted => {
                for name in self.driver.names().map(str::to_owned).collect::<Vec<_>>() {
                    self.read_source(&name);
                }
            }
            SupervisorEvent::CrdChanged { name, owner, spec_changed } => {
                self.crd_changed(&name, owner.as_deref(), spec_changed).await;
            }
            SupervisorEvent::RetryDue(module) => {
                if let Some(wait) = self.retries.get_mut(&module) {
                    wait.end();
                }
                self.handle(&module, Event::Retry).await;
            }
            SupervisorEvent::HealthDue => {
                self.health_due = None;
                self.take_health_changes().await;
            }
            SupervisorEvent::Refetch(module) => self.read_source(&module),
            SupervisorEvent::Mismatched { module, groups } => {
                self.mismatched.insert(module, groups);
            }
            SupervisorEvent::CrdWatchStateChanged => {
                for active in self.shared.modules() {
                    self.read_status_schema(&active.primary_kind.resource());
                    self.check_crds(active.name());
                    self.handle(active.name(), Event::CrdChanged).await;
                }
            }
            SupervisorEvent::StatusSchema { kind, number, schema } => {
                if self.schema_reads.is_newest(&kind, number) {
                    self.shared.set_status_schema(kind, schema);
                }
            }
            SupervisorEvent::SnapshotSaved { module, digest, result } => {
                self.commit(&module, digest, result).await;
            }
            SupervisorEvent::RollbackDecided { module, digest } => {
                self.commit_rollback(&module, digest).await;
            }
            SupervisorEvent::KindsDecided { module, digest, parameters } => {
                self.commit_kinds(&module, digest, parameters).await;
            }
            SupervisorEvent::PolicyRecordKept { module, record, problem } => {
                self.policy_record_kept(&module, record, problem).await;
            }
            SupervisorEvent::SettingsPreviewed { module, record, preview } => {
                self.settings_previewed(&module, &record, preview).await;
            }
            SupervisorEvent::SettingsChecked(module) => self.check_settings(&module).await,
            SupervisorEvent::PolicyStateChanged { module, state } => {
                self.policy_state_changed(&module, state).await;
            }
            SupervisorEvent::PolicyAuditChanged { module, state } => {
                self.policy_audit_changed(&module, state).await;
            }
            SupervisorEvent::ReadabilityChanged(module) => {
                self.resolve_kinds_again(&module).await;
                self.read_published_schema(&module);
                self.write_status(&module).await;
                self.find_leftovers(&module).await;
            }
            SupervisorEvent::LeftoversChanged(module) => self.find_leftovers(&module).await,
            SupervisorEvent::RemoveFinalizer(module) => self.remove_finalizer(&module),
            SupervisorEvent::RelistModules => {
                if self.source.relist(&self.outbox) {
                    self.report.mark_listed();
                    self.policies_are_complete();
                }
            }
        }
    }

    async fn take_health_changes(&mut self) {
        let now = self.shared.elapsed();
        let (changes, due) = self.shared.health.take_changes(now);
        for (module, change) in changes {
            self.take_health_change(&module, change).await;
        }
        if let Some(due) = due
            && self.health_due.is_none_or(|pending| due < pending)
        {
            self.health_due = Some(due);
            self.send_event_after(due.saturating_sub(now), SupervisorEvent::HealthDue);
        }
    }

    async fn take_health_change(&mut self, module: &str, change: HealthChange) {
        match change {
            HealthChange::Runs(runs) => {
                self.handle(module, Event::Health(runs.report())).await;
            }
            HealthChange::FailureThresholdExceeded { digest, new_failures, failures_max } => {
                self.check_rollback_window(module, digest, new_failures, failures_max);
            }
        }
    }

    /// Hands an input to the driver, and carries out the actions that it returns.
    pub(super) async fn handle(&mut self, name: &str, input: impl Into<Input>) {
        let input = input.into();
        let is_module = matches!(input, Input::Module(_));
        if let Input::Module(module) = &input {
            self.policies.observe(module);
        }
        self.report.liveness.begin(format!("handling an input of the module {name}"));
        let Some(input) = self.check_account(name, input) else { return };
        let actions = self.driver.handle(name, input);
        // Before the next action: an installation may be about to write by the old spec.
        if let Some(installations) = self.limits.installations.get(name) {
            installations.grant.send_replace(self.driver.crd_grant(name));
        }
        let has_report = actions.iter().any(|action| matches!(action, Action::Report(_)));
        for action in actions {
            self.report.liveness.begin(format!("carrying out an action for the module {name}"));
            self.carry_out(name, action).await;
        }
        (self.rollback.replaced, self.rollback.replaced_policy) = (None, None);
        if is_module {
            self.hand_over_missing_crds(name);
            self.check_settings(name).await;
        }
        // This repairs a status that a user changed, or that could not be written before.
        if is_module && !has_report {
            self.write_status(name).await;
        }
    }

    /// Runs a task until it ends; its result returns as an event.
    pub(super) fn spawn(
        &mut self,
        what: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.push(self.shared.env.spawn(what, future));
    }

    /// Puts an input into the inbox.
    pub(super) fn send(&self, name: &str, input: impl Into<Input>) {
        let _ = self.outbox.send(SupervisorEvent::input(name, input));
    }

    /// Puts an input into the inbox after some time.
    pub(super) fn send_after(&mut self, name: &str, time: Duration, input: impl Into<Input>) {
        self.send_event_after(time, SupervisorEvent::input(name, input));
    }

    /// Puts an event into the inbox after some time.
    pub(super) fn send_event_after(&mut self, time: Duration, event: SupervisorEvent) {
        let (env, outbox) = (self.shared.env.clone(), self.outbox.clone());
        self.spawn("later", async move {
            env.sleep(time).await;
            let _ = outbox.send(event);
        });
    }
}
