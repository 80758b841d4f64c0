//! Modules: what the driver asks for is carried out here, and what happens is told to it.
//!
//! One task, one inbox: everything that happens to modules happens in one order. Whatever
//! waits (a compile, a fetch, an installation) is a task of its own that answers by the inbox.

mod consent;
mod decisions;
mod readable;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use innkeeper_cluster::events::Regarding;
use innkeeper_cluster::{Account, Backoff, Caches, Namespaces, Task, crd};
use innkeeper_contract::{Condition, ConditionStatus, Event};
use innkeeper_core::{ObjectKey, Selector, foreign, guest_status};
use innkeeper_modules::consent::NOT_ALLOWED;
use innkeeper_modules::driver::Teardown;
use innkeeper_modules::{
    Action, Digest, Driver, Input, LoadJob, ParametersJob, Rejection, Report, RetryPolicy,
    Revision, SourceError, ValidatedSpec, machine, module,
};
use innkeeper_sandbox::Engine;
use tokio::sync::{Semaphore, mpsc, watch};

use self::consent::Consents;
use self::readable::readable;
use crate::active_module::{self, ActiveModule};
use crate::crds::{Installer, StatusSchema};
use crate::declared;
use crate::execution::Execution;
use crate::health::{Failing, HealthChange, RunHealth};
use crate::preview;
use crate::shared::Shared;
use crate::sources::{HOST_MODULE, ModuleSource, SupervisorEvent, WriteOutcome};
use crate::teardown;
use crate::watchdog::WAKE_PERIOD;

/// So many components are loaded at once. A module has at most one of them, so that one that takes
/// long to compile does not hold up the others; more would take the cores from those that serve.
const LOADS_AT_ONCE: usize = 2;

/// The first wait before something that failed for a reason elsewhere is tried again.
const RETRY_MIN: Duration = Duration::from_secs(2);

/// After which time a Module's status that could not be written is tried again.
const STATUS_RETRY: Duration = Duration::from_secs(10);

/// After which time is looked again whether objects of kinds are gone that no version declares.
const LEFTOVERS_PERIOD: Duration = Duration::from_secs(1);

/// The longest.
const RETRY_MAX: Duration = Duration::from_mins(5);

/// Carries out what the driver asks for.
pub struct Supervisor {
    shared: Arc<Shared>,
    caches: Caches,
    engine: Engine,
    driver: Driver,
    source: ModuleSource,
    inbox: mpsc::UnboundedReceiver<SupervisorEvent>,
    outbox: mpsc::UnboundedSender<SupervisorEvent>,
    tasks: FuturesUnordered<Task<()>>,
    /// So many components may be compiled at once, of all modules.
    loads: Arc<Semaphore>,
    /// Schemas that are evaluated at once, of all modules: a lane of its own beside the compilers.
    validations: Arc<Semaphore>,
    /// The last check of parameters for each component of each module; an older one is of no use.
    checks: BTreeMap<(String, Digest), Task<()>>,
    /// The last read of each module's source.
    fetches: BTreeMap<String, Task<()>>,
    /// What the last version that began to serve has replaced.
    replaced: Option<Arc<ActiveModule>>,
    /// The version before of each module on probation.
    rollback_targets: BTreeMap<String, Arc<ActiveModule>>,
    /// The last rehearsal of each module, and of which candidate.
    previews: BTreeMap<String, (Digest, Task<()>)>,
    /// What modules may do as their accounts.
    consents: Consents,
    retries: BTreeMap<String, Backoff>,
    /// The groups of the kinds that each module's last candidate declares otherwise than they are
    /// served.
    mismatched: BTreeMap<String, BTreeSet<String>>,
    /// What was said last of each module, where there is no status to write to.
    reported: BTreeMap<String, Vec<Condition>>,
    /// The conditions of each module that have been known since the host started.
    known: BTreeMap<String, BTreeSet<String>>,
}

impl Supervisor {
    /// A supervisor of modules that come from `place`.
    pub fn new(
        shared: Arc<Shared>,
        caches: Caches,
        engine: Engine,
        driver: Driver,
        source: ModuleSource,
        outbox: mpsc::UnboundedSender<SupervisorEvent>,
        inbox: mpsc::UnboundedReceiver<SupervisorEvent>,
    ) -> Self {
        Self {
            shared,
            caches,
            engine,
            driver,
            source,
            inbox,
            outbox,
            tasks: FuturesUnordered::new(),
            loads: Arc::new(Semaphore::new(LOADS_AT_ONCE)),
            validations: Arc::new(Semaphore::new(1)),
            checks: BTreeMap::new(),
            fetches: BTreeMap::new(),
            replaced: None,
            rollback_targets: BTreeMap::new(),
            previews: BTreeMap::new(),
            consents: Consents::default(),
            retries: BTreeMap::new(),
            mismatched: BTreeMap::new(),
            reported: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// Supervises until `stop` says so.
    pub async fn supervise(mut self, mut stop: watch::Receiver<bool>) {
        let shared = self.shared.clone();
        // Definitions tell which kinds came, and what a status may hold.
        let host = shared.cluster.host();
        let _definitions =
            self.caches.open_metadata(&host, HOST_MODULE, &[crd::kind()], &Namespaces::All);
        self.source.begin(&self.caches, &self.outbox);
        loop {
            shared.watchdog.rest();
            tokio::select! {
                biased;
                _ = stop.changed() => return,
                Some(event) = self.inbox.recv() => self.take(event).await,
                Some(_) = self.tasks.next() => {}
                // This distinguishes a supervisor that is not woken from one that has nothing to
                // do.
                () = shared.env.sleep(WAKE_PERIOD) => {}
                () = shared.health.notify.notified() => {
                    for (module, health_change) in shared.health.take_changes() {
                        match health_change {
                            HealthChange::Runs(runs) => self.handle(&module, to_input(runs)).await,
                            HealthChange::FailureThresholdExceeded { new_failures, failures_max } => {
                                self.check_rollback_window(&module, new_failures, failures_max);
                            }
                        }
                    }
                }
            }
        }
    }

    async fn take(&mut self, event: SupervisorEvent) {
        self.shared.watchdog.begin("taking an event".to_owned());
        match event {
            SupervisorEvent::Input { module, input } => self.handle(&module, *input).await,
            SupervisorEvent::Present(names) => {
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
            SupervisorEvent::SourceChanged(source) => {
                for name in self.source.modules_of(&source) {
                    self.fetch(&name);
                }
            }
            SupervisorEvent::SourcesChanged => {
                for name in self.driver.names().map(str::to_owned).collect::<Vec<_>>() {
                    self.fetch(&name);
                }
            }
            SupervisorEvent::Definition(name) => {
                if let Some((_, group)) = name.split_once('.') {
                    self.shared.cluster.kinds_changed(group);
                    self.caches.kind_may_be_served(group);
                    self.retry_mismatched(group).await;
                }
                self.read_definition(&name);
            }
            SupervisorEvent::Refetch(module) => self.fetch(&module),
            SupervisorEvent::Mismatched { module, groups } => {
                self.mismatched.insert(module, groups);
            }
            SupervisorEvent::DefinitionsChanged => {
                for active in self.shared.modules() {
                    self.read_definition(&active.primary.resource());
                }
            }
            SupervisorEvent::StatusSchema { kind, schema: statuses } => {
                self.shared.set_status_schema(kind, statuses);
            }
            SupervisorEvent::SnapshotSaved { module, digest, result } => {
                self.commit(&module, digest, result).await;
            }
            SupervisorEvent::ReadabilityChanged(module) => {
                self.write_status(&module).await;
                self.find_leftovers(&module).await;
            }
            SupervisorEvent::LeftoversChanged(module) => self.find_leftovers(&module).await,
            SupervisorEvent::RemoveFinalizer(module) => self.remove_finalizer(&module),
            SupervisorEvent::SourceStateChanged => {
                if self.source.relist(&self.outbox) {
                    self.shared.know_modules();
                }
            }
        }
    }

    async fn handle(&mut self, name: &str, input: Input) {
        let is_module = matches!(input, Input::Module(_));
        self.shared.watchdog.begin(format!("handling an input of the module {name}"));
        let Some(input) = self.ask_account(name, input) else { return };
        let actions = self.driver.handle(name, input);
        let reports = actions.iter().any(|action| matches!(action, Action::Report(_)));
        for action in actions {
            self.shared.watchdog.begin(format!("carrying out an action for the module {name}"));
            self.carry_out(name, action).await;
        }
        self.replaced = None;
        // A status that somebody changed, or that could not be written before, is mended.
        if is_module && !reports {
            self.write_status(name).await;
        }
    }

    async fn carry_out(&mut self, name: &str, action: Action) {
        match action {
            Action::Fetch(source) => {
                self.source.set_source(name, source);
                self.fetch(name);
            }
            Action::Load(job) => self.load(name, job),
            Action::CheckParameters(job) => self.check_parameters(name, job),
            Action::InstallCrds { digest, crds: wishes, namespaces, service_account } => {
                let consent = self.consent(name, service_account.as_deref());
                let client = self.client(name, service_account.as_deref());
                let (outbox, module) = (self.outbox.clone(), name.to_owned());
                let shared = self.shared.clone();
                self.spawn("install", async move {
                    let installer = Installer {
                        client: &client,
                        module: &module,
                        namespaces: &namespaces,
                        object_checks: &shared.object_checks,
                    };
                    let result = match consent {
                        Ok(()) => installer.install(&wishes).await,
                        Err(rejection) => Err(rejection),
                    };
                    let input = Box::new(Input::Crds { digest, result });
                    let _ = outbox.send(SupervisorEvent::Input { module, input });
                });
            }
            Action::FetchSnapshot(digest) => self.fetch_snapshot(name, digest),
            Action::Preview { digest, candidate } => self.preview(name, digest, &candidate),
            Action::Commit { digest, component } => self.save_snapshot(name, digest, component),
            Action::SaveSnapshot(component) => self.save_missing_snapshot(name, component),
            Action::BeginRollbackWindow { digest, failures_max, time } => {
                self.shared.health.begin_rollback_window(&name.into(), failures_max);
                self.rollback_targets
                    .extend(self.replaced.take().map(|before| (name.to_owned(), before)));
                self.send_after(name, time, Input::RollbackWindowOver(digest));
            }
            Action::EndRollbackWindow => {
                self.rollback_targets.remove(name);
                self.shared.health.end_rollback_window(name);
            }
            Action::Serve(revision) => self.swap(&revision),
            Action::Teardown(leaving) => self.teardown(name, leaving),
            // After the report of the same step: that gives the Module another version.
            Action::RemoveFinalizer => {
                let _ = self.outbox.send(SupervisorEvent::RemoveFinalizer(name.to_owned()));
            }
            Action::RetryLater => {
                let env = self.shared.env.clone();
                let wait = self
                    .retries
                    .entry(name.to_owned())
                    .or_insert_with(|| Backoff::new(&env, RETRY_MIN, RETRY_MAX))
                    .advance();
                self.send_after(name, wait, Input::Retry);
            }
            Action::Report(_) => {
                self.write_status(name).await;
            }
            Action::Notify(event) => self.notify(name, &event).await,
            Action::Stop => {
                tracing::info!(module = name, "module stopped");
                self.source.forget(name);
                self.fetches.remove(name);
                self.checks.retain(|(module, _), _| module != name);
                self.previews.remove(name);
                self.rollback_targets.remove(name);
                self.retries.remove(name);
                self.mismatched.remove(name);
                self.reported.remove(name);
                self.known.remove(name);
                self.consents.forget(name);
                self.shared.stop(name);
                self.count_serving();
                // What it stood in the way of may go on now.
                self.source.relist(&self.outbox);
            }
        }
    }

    fn spawn(&mut self, what: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(self.shared.env.spawn(what, future));
    }

    /// A definition changed: candidates that were refused for a kind of its group are tried again.
    async fn retry_mismatched(&mut self, group: &str) {
        let of_group = |(_, groups): &(&String, &BTreeSet<String>)| groups.contains(group);
        let names: Vec<String> =
            self.mismatched.iter().filter(of_group).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.mismatched.remove(&name);
            self.handle(&name, Input::Retry).await;
        }
    }

    /// Reads a module's source. What an earlier read of it still brings is dropped.
    fn fetch(&mut self, name: &str) {
        let Some(fetch) = self.source.fetch(name, &self.shared.cluster) else { return };
        let (env, outbox, module) = (self.shared.env.clone(), self.outbox.clone(), name.to_owned());
        let reading = self.shared.env.spawn("fetch", async move {
            let result = fetch.await;
            let unreadable = matches!(result, Err(SourceError::Unreadable { .. }));
            let input = Box::new(Input::Source(result));
            let _ = outbox.send(SupervisorEvent::Input { module: module.clone(), input });
            if unreadable {
                env.sleep(env.jitter(RETRY_MIN)).await;
                let _ = outbox.send(SupervisorEvent::Refetch(module));
            }
        });
        self.fetches.insert(name.to_owned(), reading);
    }

    fn load(&mut self, name: &str, job: LoadJob) {
        if let Some(why) = self.consents.refused(name).map(str::to_owned) {
            let result = Err(Rejection::new(NOT_ALLOWED, why, RetryPolicy::Later));
            let input = Box::new(Input::Loaded { digest: job.component.digest, result });
            let _ = self.outbox.send(SupervisorEvent::Input { module: name.to_owned(), input });
            return;
        }
        tracing::info!(module = name, component = ?job.component, "revision loading");
        let (engine, outbox, module) = (self.engine.clone(), self.outbox.clone(), name.to_owned());
        let execution = self.shared.execution;
        let loads = self.loads.clone();
        let host = self.shared.cluster.host();
        // What served already stays decided: its kinds are compared one by one as they are read.
        let digest = job.component.digest.to_string();
        let report = self.driver.report(name);
        let is_decided = report.is_some_and(|one| {
            one.members.get("digest").and_then(|value| value.as_str()) == Some(&*digest)
        });
        self.mismatched.remove(name);
        self.spawn("load", async move {
            // Modules take turns: whoever asked first is loaded first.
            let permit = loads.acquire_owned().await;
            let input = match execution {
                Execution::Threads => tokio::task::block_in_place(|| job.run(&engine)),
                Execution::Inline => job.run(&engine),
            };
            drop(permit);
            let input = match input {
                Input::Loaded { digest, result: Ok(guest) } if !is_decided => {
                    let result = match declared::check(&host, &guest).await {
                        Ok(()) => Ok(guest),
                        Err(refused) => {
                            let (module, groups) = (module.clone(), refused.groups);
                            let _ = outbox.send(SupervisorEvent::Mismatched { module, groups });
                            Err(refused.rejection)
                        }
                    };
                    Input::Loaded { digest, result }
                }
                input => input,
            };
            let _ = outbox.send(SupervisorEvent::Input { module, input: Box::new(input) });
        });
    }

    /// Checks parameters in a task of its own: a schema is a guest's, and may take its time.
    fn check_parameters(&mut self, name: &str, job: ParametersJob) {
        let (engine, outbox, module) = (self.engine.clone(), self.outbox.clone(), name.to_owned());
        let (execution, validations) = (self.shared.execution, self.validations.clone());
        let key = (name.to_owned(), job.digest);
        let checking = self.shared.env.spawn("check parameters", async move {
            let _permit = validations.acquire_owned().await;
            let input = match execution {
                Execution::Threads => tokio::task::block_in_place(|| job.run(&engine)),
                Execution::Inline => job.run(&engine),
            };
            let _ = outbox.send(SupervisorEvent::Input { module, input: Box::new(input) });
        });
        self.checks.retain(|_, check| !check.is_finished());
        self.checks.insert(key, checking);
    }

    /// From now on this serves. The new view opens before the old one closes with the last
    /// round that uses it: what both read stays as it is.
    fn serve(&mut self, revision: &Arc<Revision>) {
        let name = &revision.module;
        let Some(active) = self.activate(revision) else { return };
        if revision.settings.service_account.is_none() {
            tracing::warn!(module = %name, "the Module names no serviceAccountName: it acts with all rights of this kubeconfig");
        }
        tracing::info!(
            module = %name, guest = %revision.guest.manifest().name, digest = &revision.guest.digest()[..12],
            version = revision.version, "revision active"
        );
        self.retries.remove(&**name);
        self.previews.remove(&**name);
        self.shared.metrics.reloads.with_label_values(&[&**name, "active"]).inc();
        // Its probation begins next, if it has one.
        self.replaced = self.shared.module(name);
        let active = Arc::new(active);
        self.shared.serve(&active);
        if let Some(before) = self.replaced.clone()
            && teardown::is_narrowed(&before, &active)
        {
            let shared = self.shared.clone();
            self.spawn("narrow", async move {
                teardown::release_unselected(&shared, &before, &active).await;
            });
        }
        self.count_serving();
        let primary = &revision.guest.manifest().primary;
        self.read_definition(&primary.resource());
    }

    /// A version with its identity and its caches.
    fn activate(&mut self, revision: &Arc<Revision>) -> Option<ActiveModule> {
        let settings: &ValidatedSpec = &revision.settings;
        let name = &revision.module;
        let selector: Selector = match settings.selector.parse() {
            Ok(selector) => selector,
            Err(error) => {
                // Settings are checked: this is a mistake of ours, said rather than hidden.
                tracing::error!(module = %name, %error, "the selector cannot be read");
                return None;
            }
        };
        let namespaces = if settings.namespaces.is_empty() {
            Namespaces::All
        } else {
            Namespaces::Only(settings.namespaces.clone())
        };
        let client = self.client(name, settings.service_account.as_deref());
        // Modules of one account share its caches: one that is revoked closes its view, not theirs.
        let reader = match settings.service_account.as_deref() {
            Some(account) => {
                self.shared.cluster.as_account(&Account::new(module::NAMESPACE, account))
            }
            None => client.clone(),
        };
        let view = self.caches.open(&reader, name, &active_module::watched(revision), &namespaces);
        Some(ActiveModule::new(revision.clone(), selector, client, view))
    }

    /// Runs a candidate without writing, beside what serves.
    fn preview(&mut self, name: &str, digest: Digest, candidate: &Arc<Revision>) {
        if let Err(rejection) = self.consent(name, candidate.settings.service_account.as_deref()) {
            let input = Box::new(Input::Previewed { digest, result: Err(rejection) });
            let _ = self.outbox.send(SupervisorEvent::Input { module: name.to_owned(), input });
            return;
        }
        tracing::info!(module = name, digest = %digest.short(), "preview started");
        let Some(candidate) = self.activate(candidate).map(Arc::new) else { return };
        let (shared, outbox, module) = (self.shared.clone(), self.outbox.clone(), name.to_owned());
        let rehearsing = self.shared.env.spawn("rehearse", async move {
            let serving = shared.module(&module);
            let result = preview::preview(&shared, &candidate, serving.as_ref()).await;
            let result = result.map_err(|refused| {
                // A change of the definition retries it at once.
                if !refused.groups.is_empty() {
                    let (module, groups) = (module.clone(), refused.groups);
                    let _ = outbox.send(SupervisorEvent::Mismatched { module, groups });
                }
                refused.rejection
            });
            let input = Box::new(Input::Previewed { digest, result });
            let _ = outbox.send(SupervisorEvent::Input { module, input });
        });
        self.previews.insert(name.to_owned(), (digest, rehearsing));
    }

    /// More primaries fail than may since the swap. Those that would fail with the version before
    /// as well are not held against the new one: what a user wrote meanwhile may be at fault.
    fn check_rollback_window(
        &mut self,
        name: &str,
        fresh: BTreeMap<ObjectKey, Failing>,
        failures_max: u32,
    ) {
        let Some(before) = self.rollback_targets.get(name).cloned() else { return };
        let (shared, outbox, module) =
            (self.shared.clone(), self.outbox.clone(), Arc::<str>::from(name));
        self.spawn("judge", async move {
            let (mut forgiven, mut held) = (Vec::new(), Vec::new());
            for (key, how) in fresh {
                if preview::fails(&shared, &before, &key).await {
                    forgiven.push(key);
                } else {
                    held.push(how);
                }
            }
            match held.first() {
                Some(first) if held.len() > usize::try_from(failures_max).unwrap_or(usize::MAX) => {
                    let input = Box::new(Input::FailureThresholdExceeded(
                        failure_threshold_exceeded(held.len(), first),
                    ));
                    let _ =
                        outbox.send(SupervisorEvent::Input { module: module.to_string(), input });
                }
                _ => {
                    shared.health.exclude(&module, forgiven);
                    shared.health.begin_rollback_window(&module, failures_max);
                }
            }
        });
    }

    /// The primaries of a module that leaves are let go.
    fn teardown(&mut self, name: &str, leaving: Teardown) {
        tracing::info!(module = name, "teardown started");
        self.previews.remove(name);
        let consent = self.consent(name, leaving.service_account.as_deref());
        let client = self.client(name, leaving.service_account.as_deref());
        let (shared, outbox, module) = (self.shared.clone(), self.outbox.clone(), name.to_owned());
        self.spawn("leave", async move {
            let result = match consent {
                Ok(()) => teardown::teardown(&shared, &client, &module, &leaving).await,
                Err(rejection) => Err(rejection),
            };
            let input = Box::new(Input::TornDown(result));
            let _ = outbox.send(SupervisorEvent::Input { module, input });
        });
    }

    /// Takes the host's finalizer off a Module, which goes then; one of a folder is gone already.
    fn remove_finalizer(&mut self, name: &str) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
        let live = self.source.module_object(name);
        self.spawn("let go", async move {
            let input = match live {
                None => Input::Gone,
                Some(live) => match teardown::remove_finalizer(&cluster.host(), &live).await {
                    // Its event tells that it is gone.
                    Ok(()) => return,
                    Err(rejection) => Input::TornDown(Err(rejection)),
                },
            };
            let _ = outbox.send(SupervisorEvent::Input { module, input: Box::new(input) });
        });
    }

    /// Looks whether of the kinds that only versions before declared anything is there.
    async fn find_leftovers(&mut self, name: &str) {
        let Some(active) = self.shared.module(name) else { return };
        if active.dropped().is_empty() {
            return;
        }
        // A round of the version before may be making one.
        if !self.shared.queue().is_idle(name) {
            return self.send_event_after(
                LEFTOVERS_PERIOD,
                SupervisorEvent::LeftoversChanged(name.to_owned()),
            );
        }
        let gone = teardown::leftovers_gone(&active);
        if !gone.is_empty() {
            self.handle(name, Input::LeftoversGone(gone)).await;
        }
    }

    fn send_after(&mut self, name: &str, time: Duration, input: Input) {
        let event = SupervisorEvent::Input { module: name.to_owned(), input: Box::new(input) };
        self.send_event_after(time, event);
    }

    fn send_event_after(&mut self, time: Duration, event: SupervisorEvent) {
        let (env, outbox) = (self.shared.env.clone(), self.outbox.clone());
        self.spawn("later", async move {
            env.sleep(time).await;
            let _ = outbox.send(event);
        });
    }

    fn count_serving(&self) {
        self.shared
            .metrics
            .modules
            .set(i64::try_from(self.shared.modules().len()).unwrap_or(i64::MAX));
    }

    /// Reads a CustomResourceDefinition anew, if it is of some module's primary: what its
    /// schema would prune is not sent in a status.
    fn read_definition(&mut self, name: &str) {
        let modules = self.shared.modules();
        let Some(active) = modules.into_iter().find(|one| one.primary.resource() == name) else {
            return;
        };
        let (client, kind) = (self.shared.cluster.host(), active.primary.clone());
        let (outbox, name) = (self.outbox.clone(), name.to_owned());
        self.spawn("definition", async move {
            let key = ObjectKey::new("", &name);
            let definition = client.get(&crd::kind(), &key).await;
            let statuses = match definition {
                Ok(object) => serde_json::from_str(&object.text)
                    .map_or(StatusSchema::Whole, |value| StatusSchema::of(&value, &kind)),
                Err(error) => {
                    tracing::info!(definition = %name, "cannot be read, so statuses are sent whole: {error}");
                    StatusSchema::Whole
                }
            };
            let _ = outbox.send(SupervisorEvent::StatusSchema { kind: (*kind).clone(), schema: statuses });
        });
    }

    /// The driver's report and what the module may and can read.
    fn report(&self, name: &str) -> Option<Report> {
        Some(self.complete_report(name, self.driver.report(name)?))
    }

    fn complete_report(&self, name: &str, mut report: Report) -> Report {
        if let Some(active) = self.shared.module(name) {
            report.conditions.extend(readable(&active));
        }
        self.consents.report(name, &mut report.conditions);
        // A guest's names and schemas may be of any length; a message that is too long would make
        // the whole status unwritable.
        for condition in &mut report.conditions {
            condition.message =
                foreign::message(&condition.message, guest_status::MESSAGE_BYTES_MAX);
        }
        report
    }

    /// Writes a Module's status; `None` if there is nothing to write yet.
    async fn write_status(&mut self, name: &str) -> Option<WriteOutcome> {
        let report = self.report(name)?;
        if self.consents.missing(name).is_none()
            && self.is_starting(name, &report)
            && !self.source.live_conditions(name).is_empty()
        {
            return None;
        }
        self.write_report(name, report).await
    }

    /// Writes down which version is decided, also if nothing serves yet.
    async fn write_decision(&mut self, name: &str) -> Option<WriteOutcome> {
        let decision = self.complete_report(name, self.driver.decision(name)?);
        self.write_report(name, decision).await
    }

    async fn write_report(&mut self, name: &str, mut report: Report) -> Option<WriteOutcome> {
        let live = self.source.live_conditions(name);
        let known = self.known.entry(name.to_owned()).or_default();
        carry_over(&mut report.conditions, &live, known);
        for condition in &report.conditions {
            let before = self
                .reported
                .get(name)
                .and_then(|said| said.iter().find(|before| before.type_ == condition.type_));
            if before != Some(condition) {
                log_condition(name, condition);
            }
        }
        self.reported.insert(name.to_owned(), report.conditions.clone());
        let written = self.source.write_status(name, &report, &self.shared, &self.caches).await;
        if matches!(written, WriteOutcome::Failed(_)) {
            self.send_event_after(
                STATUS_RETRY,
                SupervisorEvent::ReadabilityChanged(name.to_owned()),
            );
        }
        Some(written)
    }

    /// Nothing serves yet and the source is on its way: after a restart that passes in a moment,
    /// and what the Module says of the time before is truer than "loading".
    fn is_starting(&self, name: &str, report: &Report) -> bool {
        let loading = report.conditions.iter().any(|condition| {
            condition.type_ == machine::condition::LOADED_CONDITION
                && condition.status == ConditionStatus::Unknown
        });
        loading && self.shared.module(name).is_none()
    }

    async fn notify(&mut self, name: &str, event: &Event) {
        if event.type_ == innkeeper_contract::EventType::Warning {
            tracing::warn!(module = name, reason = event.reason, "{}", event.message);
            self.shared.metrics.reloads.with_label_values(&[name, "refused"]).inc();
        }
        let Some(object) = self.source.module_object(name) else { return };
        let regarding = Regarding::object(self.source.module_kind(), &object);
        let client = self.shared.cluster.host();
        let written =
            self.shared.events.publish(&client, HOST_MODULE, &regarding, "Load", event).await;
        if let Err(error) = written {
            tracing::warn!(module = name, "an Event cannot be written: {error}");
        }
    }
}

/// What is heard of the runs, in the driver's words.
fn to_input(runs: RunHealth) -> Input {
    Input::Health(match runs {
        RunHealth::Succeed => Ok(()),
        RunHealth::Fail((reason, message)) => {
            Err(Rejection::new(reason, message, RetryPolicy::Later))
        }
    })
}

/// What is said of primaries that fail and would not with the version before.
fn failure_threshold_exceeded(count: usize, (reason, message): &Failing) -> Rejection {
    let primaries = if count == 1 { "primary fails" } else { "primaries fail" };
    let message = format!(
        "{count} {primaries} where the version before does not, for example with {reason}: {message}"
    );
    Rejection::new(reason, message, RetryPolicy::Later)
}

/// What is not known yet since the host started stays as it was said before.
fn carry_over(conditions: &mut [Condition], live: &[Condition], known: &mut BTreeSet<String>) {
    for condition in conditions {
        if condition.status != ConditionStatus::Unknown {
            known.insert(condition.type_.clone());
        } else if !known.contains(&condition.type_)
            && let Some(before) = live.iter().find(|before| before.type_ == condition.type_)
        {
            condition.clone_from(before);
        }
    }
}

fn log_condition(name: &str, condition: &Condition) {
    let (type_, status) = (&condition.type_, condition.status.as_str());
    tracing::info!(module = name, condition = %type_, status, reason = %condition.reason, "{}", condition.message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(type_: &str, status: ConditionStatus) -> Condition {
        Condition { type_: type_.into(), status, reason: "Because".into(), message: String::new() }
    }

    #[test]
    fn what_is_not_known_yet_stays_as_it_was_until_it_has_been_known() {
        let live = [condition("Healthy", ConditionStatus::False)];
        let unknown = condition("Healthy", ConditionStatus::Unknown);
        let mut known = BTreeSet::new();
        let mut conditions = [unknown.clone(), condition("Serving", ConditionStatus::True)];
        carry_over(&mut conditions, &live, &mut known);
        assert_eq!(conditions[0], live[0]);
        carry_over(&mut [condition("Healthy", ConditionStatus::True)], &live, &mut known);
        let mut conditions = [unknown.clone()];
        carry_over(&mut conditions, &live, &mut known);
        assert_eq!(conditions[0], unknown);
    }
}
