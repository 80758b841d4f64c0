//! Saves decisions: the host saves a snapshot of the component and writes the decision into the
//! Module before the revision reconciles its first primary.

use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::{Component, Digest, Event, Input, Rejection, Report, RetryPolicy};
use serde_json::Value;

use super::cluster_source::WriteOutcome;
use super::component_snapshots;
use super::event::SupervisorEvent;
use super::supervisor::Supervisor;
use crate::modules::teardown;

impl Supervisor {
    /// Fetches the snapshot of the revision that was active before the host started.
    pub(super) fn fetch_snapshot(&mut self, name: &str, digest: Digest) {
        let (cluster, outbox, module) =
            (self.cluster.clone(), self.outbox.clone(), name.to_owned());
        self.spawn("fetch snapshot", async move {
            let result = component_snapshots::fetch(&cluster, &module, digest).await;
            let _ = outbox.send(SupervisorEvent::input(module, Input::Snapshot { digest, result }));
        });
    }

    /// Saves the snapshot of a revision that is decided; the decision is written afterwards.
    pub(super) fn save_snapshot(
        &mut self,
        name: &str,
        digest: Digest,
        component: Option<Component>,
    ) {
        let (cluster, outbox, module) =
            (self.cluster.clone(), self.outbox.clone(), name.to_owned());
        let live = self.source.module_object(name);
        self.spawn("save snapshot", async move {
            let result = match (live, component) {
                (Some(live), Some(component)) => {
                    component_snapshots::save(&cluster, &live, &component).await
                }
                // The Module of a folder has its file only.
                _ => Ok(()),
            };
            let _ = outbox.send(SupervisorEvent::SnapshotSaved { module, digest, result });
        });
    }

    /// Saves the snapshot of a revision that was active before the host started, if it is missing.
    pub(super) fn save_missing_snapshot(&mut self, name: &str, component: Component) {
        if self.source.has_snapshot(name, component.digest) != Some(false) {
            return;
        }
        let Some(live) = self.source.module_object(name) else { return };
        let cluster = self.cluster.clone();
        self.spawn("save snapshot", async move {
            if let Err(rejection) = component_snapshots::save(&cluster, &live, &component).await {
                tracing::warn!(module = live.key.name(), "{}", rejection.message);
            }
        });
    }

    /// Writes the decision after its snapshot is saved: the Module's finalizer first, then its
    /// status. The answer is [`Event::Committed`].
    pub(super) async fn commit(
        &mut self,
        name: &str,
        digest: Digest,
        saved: Result<(), Rejection>,
    ) {
        let result = match (saved, self.driver.committed_status(name, digest)) {
            (Ok(()), Some(decision)) => {
                self.write_finalizer_and_decision(name, digest, decision).await
            }
            // A user has rejected the candidate, or deleted the Module.
            (Ok(()), None) => Ok(()),
            (Err(rejection), _) => Err(rejection),
        };
        if result.is_ok() {
            self.sweep_snapshots(name);
        }
        self.handle(name, Event::Committed { digest, result }).await;
    }

    /// Writes the decision to return to the previous revision, before that revision reconciles its
    /// first primary. The answer is [`Event::RollbackCommitted`].
    pub(super) async fn commit_rollback(&mut self, name: &str, digest: Digest) {
        // A user may have rejected the previous revision, or deleted the Module.
        let Some(decision) = self.driver.rollback_status(name) else { return };
        let result = self.write_finalizer_and_decision(name, digest, decision).await;
        self.handle(name, Event::RollbackCommitted { digest, result }).await;
    }

    /// Writes the kinds that a revision is to own, before the revision is active. The answer is
    /// [`Input::KindsCommitted`].
    pub(super) async fn commit_kinds(&mut self, name: &str, digest: Digest, parameters: Value) {
        let Some(report) = self.driver.report(name) else { return };
        let result = self.keep_decision(name, report).await.map_err(|why| {
            let message = format!(
                "the status cannot name the owned kinds of the parameters: {why}; the host tries again"
            );
            Rejection::new("NotCommitted", message, RetryPolicy::Later)
        });
        self.handle(name, Input::KindsCommitted { digest, parameters, result }).await;
    }

    async fn write_finalizer_and_decision(
        &mut self,
        name: &str,
        digest: Digest,
        decision: Report,
    ) -> Result<(), Rejection> {
        if self.driver.has_finalizer(name)
            && let Some(live) = self.source.module_object(name)
        {
            teardown::add_finalizer(&self.cluster.host(), &live).await?;
        }
        self.keep_decision(name, decision).await.map_err(|why| {
            let message =
                format!("the decision for {} cannot be written down: {why}", digest.short());
            Rejection::new("NotCommitted", message, RetryPolicy::Later)
        })
    }

    /// Writes a status that a restarted host needs, if the source keeps statuses; otherwise why
    /// not.
    async fn keep_decision(&mut self, name: &str, decision: Report) -> Result<(), String> {
        if !self.source.keeps_decisions() {
            return Ok(());
        }
        match self.write_decision(name, decision).await {
            WriteOutcome::Applied => Ok(()),
            WriteOutcome::Conflict => Err("the Module has changed".to_owned()),
            WriteOutcome::Failed(why) => Err(why),
            WriteOutcome::NoObject => Err("the Module is gone".to_owned()),
        }
    }

    /// Deletes the snapshots of revisions that are neither decided nor in the history.
    fn sweep_snapshots(&mut self, name: &str) {
        let Some(decision) = self.driver.decided_digests(name) else { return };
        let digests = decision.active.into_iter().chain(decision.history);
        let mut kept: Vec<String> = digests.map(|digest| snapshot_name(name, digest)).collect();
        // A user may have made a snapshot the source, to return to it.
        kept.extend(self.source.source_name(name));
        let (cluster, module) = (self.cluster.clone(), name.to_owned());
        let snapshots = self.source.snapshots(name);
        self.spawn("sweep", async move {
            component_snapshots::sweep(&cluster, &module, &snapshots, &kept).await;
        });
    }
}
