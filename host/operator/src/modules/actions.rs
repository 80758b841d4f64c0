//! Carries out the actions of the driver.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::events::Regarding;
use innkeeper_contract::{Event as Notice, EventType};
use innkeeper_modules::account_annotation::NOT_ALLOWED;
use innkeeper_modules::driver::Teardown;
use innkeeper_modules::{
    Action, CrdGrant, CrdInstallation, DirectEffect, Event, FinishedInstallation, Input,
    InstalledCrds, LoadJob, ParametersJob, Rejection, RetryPolicy, SourceError,
};

use tokio::sync::{Semaphore, watch};

use super::crds::Installer;
use super::event::{HOST_MODULE, MODULE, POD, SupervisorEvent};
use super::retry_wait::RetryWait;
use super::supervisor::{Installations, Supervisor};
use super::{declared, kind_resolution};
use crate::modules::teardown;

/// The first wait before something that failed for a reason elsewhere is tried again.
const RETRY_MIN: Duration = Duration::from_secs(2);

/// The longest wait.
const RETRY_MAX: Duration = Duration::from_mins(5);

impl Supervisor {
    /// Carries out one action for a module.
    pub(super) async fn carry_out(&mut self, name: &str, action: Action) {
        match action {
            Action::Fetch(source) => {
                self.source.set_source(name, source);
                self.read_source(name);
            }
            Action::Load(job) => self.load(name, job),
            Action::CheckParameters(job) => self.check_parameters(name, job),
            // After the report of the same step, as the decision for a rollback.
            Action::CommitKinds { digest, parameters } => {
                let module = name.to_owned();
                let event = SupervisorEvent::KindsDecided { module, digest, parameters };
                let _ = self.outbox.send(event);
            }
            Action::InstallCrds(installation) => self.install_crds(name, installation),
            Action::Preview { digest, candidate } => self.preview(name, digest, &candidate),
            Action::Commit { digest, component } => self.save_snapshot(name, digest, component),
            Action::CommitRollback(digest) => {
                let module = name.to_owned();
                let _ = self.outbox.send(SupervisorEvent::RollbackDecided { module, digest });
            }
            Action::SaveSnapshot(component) => self.save_missing_snapshot(name, component),
            Action::BeginRollbackWindow { digest, failures_max, time } => {
                self.begin_rollback_window(name, digest, failures_max, time);
            }
            Action::Activate(revision) => self.activate_if_allowed(&revision),
            Action::Teardown(teardown) => self.tear_down(name, teardown),
            Action::RetryOverlapping(names) => {
                for name in names {
                    self.send(&name, Input::RetryOverlapping);
                }
            }
            Action::Report(_) => {
                self.write_status(name).await;
            }
            Action::Direct(effect) => self.carry_out_direct(name, effect).await,
        }
    }

    /// Carries out an effect to which the driver added nothing.
    async fn carry_out_direct(&mut self, name: &str, effect: DirectEffect) {
        match effect {
            DirectEffect::RestoreSnapshot(digest) => self.fetch_snapshot(name, digest),
            DirectEffect::EndRollbackWindow => self.end_rollback_window(name),
            DirectEffect::ReinstallLater => self.reinstall_later(name),
            // After the report of the same step, which gives the Module another resourceVersion.
            DirectEffect::RemoveFinalizer => {
                let _ = self.outbox.send(SupervisorEvent::RemoveFinalizer(name.to_owned()));
            }
            DirectEffect::RetryLater => self.retry_later(name),
            DirectEffect::Notify(event) => self.publish_event(name, &event).await,
            DirectEffect::RemoveModule => self.forget(name),
        }
    }

    /// Hands in [`Event::Retry`] after a backoff. One retry tries all that failed, so at most one
    /// wait is under way.
    pub(super) fn retry_later(&mut self, name: &str) {
        if self.retries.get(name).is_some_and(RetryWait::is_pending) {
            return;
        }
        let before = self.retries.remove(name);
        let (outbox, module) = (self.outbox.clone(), name.to_owned());
        let wait = RetryWait::begin(&self.shared.env, (RETRY_MIN, RETRY_MAX), before, move || {
            let _ = outbox.send(SupervisorEvent::RetryDue(module));
        });
        self.retries.insert(name.to_owned(), wait);
    }

    /// Reads a module's source. The result of an earlier read is dropped.
    pub(super) fn read_source(&mut self, name: &str) {
        let Some(read) = self.source.read(name) else { return };
        let (env, outbox, module) = (self.shared.env.clone(), self.outbox.clone(), name.to_owned());
        let task = self.shared.env.spawn("fetch", async move {
            let result = read.await;
            let is_unreadable = matches!(result, Err(SourceError::Unreadable { .. }));
            let _ = outbox.send(SupervisorEvent::input(&*module, Input::Source(result)));
            if is_unreadable {
                env.sleep(env.jitter(RETRY_MIN)).await;
                let _ = outbox.send(SupervisorEvent::Refetch(module));
            }
        });
        self.latest.reads.insert(name.to_owned(), task);
    }

    fn load(&mut self, name: &str, job: LoadJob) {
        if let Some(why) = self.accounts.denied(name) {
            let result = Err(Rejection::new(NOT_ALLOWED, why, RetryPolicy::Later));
            return self.send(name, Input::Loaded { digest: job.component.digest, result });
        }
        tracing::info!(module = name, component = ?job.component, "revision loading");
        let (engine, outbox, module) = (self.engine.clone(), self.outbox.clone(), name.to_owned());
        let execution = self.replica.execution();
        let loads = self.limits.loads.clone();
        let host = self.cluster.host();
        // A revision that was active stays decided: its kinds are compared one by one as they are
        // read.
        let is_decided = self.driver.active_digest(name) == Some(job.component.digest);
        self.mismatched.remove(name);
        self.spawn("load", async move {
            // First come, first served: modules take turns.
            let permit = loads.acquire_owned().await;
            let input = execution.run(|| job.run(&engine));
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
            let _ = outbox.send(SupervisorEvent::input(module, input));
        });
    }

    /// Checks parameters in a task of its own: the schema is a guest's, and may take long.
    fn check_parameters(&mut self, name: &str, job: ParametersJob) {
        let (engine, outbox, module) = (self.engine.clone(), self.outbox.clone(), name.to_owned());
        let (execution, checks) = (self.replica.execution(), self.limits.parameter_checks.clone());
        let key = (name.to_owned(), job.digest);
        let host = self.cluster.host();
        let task = self.shared.env.spawn("check parameters", async move {
            let permit = checks.acquire_owned().await;
            let input = execution.run(|| job.run(&engine));
            drop(permit);
            let input = match input {
                Input::ParametersChecked { digest, parameters, result: Ok(_) } => {
                    let found = kind_resolution::resolve(&host, &job).await;
                    let result = found.map_err(|refused| {
                        let (module, groups) = (module.clone(), refused.groups);
                        let _ = outbox.send(SupervisorEvent::Mismatched { module, groups });
                        refused.rejection
                    });
                    Input::ParametersChecked { digest, parameters, result }
                }
                input => input,
            };
            let _ = outbox.send(SupervisorEvent::input(module, input));
        });
        self.latest.parameter_checks.retain(|_, check| !check.is_finished());
        self.latest.parameter_checks.insert(key, task);
    }

    /// Installs definitions as the module's account.
    fn install_crds(&mut self, name: &str, installation: CrdInstallation) {
        let account = installation.service_account.as_deref();
        let access = self.account_result(name, account);
        let client = self.client(name, account);
        let (host, object_checks) = (self.cluster.host(), self.limits.object_checks.clone());
        let (outbox, module) = (self.outbox.clone(), name.to_owned());
        // One after the other: the candidate and the active revision may bring the same definition.
        let installations = self.limits.installations.entry(name.to_owned());
        let installations = installations.or_insert_with(|| Installations {
            install_lock: Arc::new(Semaphore::new(1)),
            grant: watch::Sender::new(self.driver.crd_grant(name)),
        });
        let (install_lock, grant) =
            (installations.install_lock.clone(), installations.grant.subscribe());
        self.spawn("install", async move {
            let _permit = install_lock.acquire_owned().await;
            let installer = Installer {
                host: &host,
                client: &client,
                module: &module,
                namespaces: &installation.namespaces,
                adopts: installation.adopts,
                grant: &grant,
                object_checks: &object_checks,
            };
            let mut written = InstalledCrds::default();
            let result = match access {
                Ok(()) => installer.install(&installation.crds, &mut written).await,
                Err(rejection) => Err(rejection.into()),
            };
            let CrdInstallation { purpose, number, digest, .. } = installation;
            let finished = FinishedInstallation { purpose, number, digest, written, result };
            let input = Input::CrdsInstalled(Box::new(finished));
            let _ = outbox.send(SupervisorEvent::input(module, input));
        });
    }

    /// Removes the module's finalizer from its primaries.
    fn tear_down(&mut self, name: &str, teardown: Teardown) {
        tracing::info!(module = name, "teardown started");
        self.latest.previews.remove(name);
        let account = teardown.service_account.as_deref();
        let access = self.account_result(name, account);
        let client = self.client(name, account);
        let (shared, outbox, module) = (self.shared.clone(), self.outbox.clone(), name.to_owned());
        self.spawn("teardown", async move {
            let result = match access {
                Ok(()) => teardown::teardown(&shared, &client, &module, &teardown).await,
                Err(rejection) => Err(rejection),
            };
            let _ = outbox.send(SupervisorEvent::input(module, Event::TornDown(result)));
        });
    }

    /// Removes the host's finalizer from a Module; the Module of a folder is gone already.
    pub(super) fn remove_finalizer(&mut self, name: &str) {
        let (cluster, outbox, module) =
            (self.cluster.clone(), self.outbox.clone(), name.to_owned());
        let live = self.source.module_object(name);
        self.spawn("remove finalizer", async move {
            let input = match live {
                None => Input::Gone,
                Some(live) => match teardown::remove_finalizer(&cluster.host(), &live).await {
                    // The watch delivers its deletion.
                    Ok(()) => return,
                    Err(rejection) => Event::TornDown(Err(rejection)).into(),
                },
            };
            let _ = outbox.send(SupervisorEvent::input(module, input));
        });
    }

    pub(super) async fn publish_event(&mut self, name: &str, event: &Notice) {
        if event.type_ == EventType::Warning {
            tracing::warn!(module = name, reason = event.reason, "{}", event.message);
            self.shared.metrics.reloads.with_label_values(&[name, "refused"]).inc();
        }
        let mut event = event.clone();
        let (kind, key, uid) = match (self.source.module_object(name), self.host.pod()) {
            (Some(module), _) => (&*MODULE, module.key.clone(), module.uid.to_string()),
            // Without a Module it is about the host's Pod, and names the module.
            (None, Some((key, uid))) => {
                event.message = format!("module {name}: {}", event.message);
                (&*POD, key, uid.to_owned())
            }
            (None, None) => return,
        };
        let regarding = Regarding { kind, key: &key, uid: &uid };
        let client = self.cluster.host();
        let written =
            self.shared.events.publish(&client, HOST_MODULE, &regarding, "Load", &event).await;
        if let Err(error) = written {
            tracing::warn!(module = name, "an Event cannot be written: {error}");
        }
    }

    /// Forgets a module that was deleted.
    fn forget(&mut self, name: &str) {
        tracing::info!(module = name, "module stopped");
        self.source.forget(name);
        self.latest.reads.remove(name);
        self.latest.parameter_checks.retain(|(module, _), _| module != name);
        self.latest.previews.remove(name);
        self.latest.rollback_checks.remove(name);
        self.latest.policy_windows.remove(name);
        self.rollback.previous.remove(name);
        self.retries.remove(name);
        self.reinstalls.remove(name);
        if let Some(installations) = self.limits.installations.remove(name) {
            installations.grant.send_replace(CrdGrant::default());
        }
        self.mismatched.remove(name);
        self.history.remove(name);
        self.report.forget(name);
        self.accounts.forget(name);
        self.withdraw_deleted(name);
        self.shared.deactivate(name);
        self.count_active();
    }
}
