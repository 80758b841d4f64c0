//! Saves decisions: the host saves a snapshot of the component and writes the decision into the
//! Module before the revision reconciles its first primary.

use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::{Component, Digest, Event, Input, Rejection, RetryPolicy};

use super::cluster_source::WriteOutcome;
use super::component_snapshots;
use super::event::SupervisorEvent;
use super::supervisor::Supervisor;
use crate::modules::teardown;

impl Supervisor {
    /// Fetches the snapshot of the revision that was active before the host started.
    pub(super) fn fetch_snapshot(&mut self, name: &str, digest: Digest) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
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
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
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
        let cluster = self.shared.cluster.clone();
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
        let result = match saved {
            Ok(()) => self.write_finalizer_and_decision(name, digest).await,
            Err(rejection) => Err(rejection),
        };
        if result.is_ok() {
            self.sweep_snapshots(name);
        }
        self.handle(name, Event::Committed { digest, result }).await;
    }

    async fn write_finalizer_and_decision(
        &mut self,
        name: &str,
        digest: Digest,
    ) -> Result<(), Rejection> {
        if self.driver.has_finalizer(name)
            && let Some(live) = self.source.module_object(name)
        {
            teardown::add_finalizer(&self.shared.cluster.host(), &live).await?;
        }
        if !self.source.keeps_decisions() {
            return Ok(());
        }
        let why = match self.write_decision(name).await {
            Some(WriteOutcome::Applied) => return Ok(()),
            Some(WriteOutcome::Conflict) => "the Module has changed".to_owned(),
            Some(WriteOutcome::Failed(why)) => why,
            Some(WriteOutcome::NoObject) | None => "the Module is gone".to_owned(),
        };
        let message = format!("the decision for {} cannot be written down: {why}", digest.short());
        Err(Rejection::new("NotCommitted", message, RetryPolicy::Later))
    }

    /// Deletes the snapshots of revisions that are neither decided nor in the history.
    fn sweep_snapshots(&mut self, name: &str) {
        let Some(decision) = self.driver.decided_digests(name) else { return };
        let digests = decision.active.into_iter().chain(decision.history);
        let mut kept: Vec<String> = digests.map(|digest| snapshot_name(name, digest)).collect();
        // A user may have made a snapshot the source, to return to it.
        kept.extend(self.source.source_name(name));
        let (cluster, module) = (self.shared.cluster.clone(), name.to_owned());
        let snapshots = self.source.snapshots(name);
        self.spawn("sweep", async move {
            component_snapshots::sweep(&cluster, &module, &snapshots, &kept).await;
        });
    }
}
