//! Which revision is decided: the decision is written down, with a copy of its component, before
//! the revision reconciles its first primary.

use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::{Component, Digest, Input, Rejection, RetryPolicy};

use super::Supervisor;
use crate::component_snapshots;
use crate::sources::{SupervisorEvent, WriteOutcome};
use crate::teardown;

impl Supervisor {
    /// Fetches the copy of what served last.
    pub(super) fn fetch_snapshot(&mut self, name: &str, digest: Digest) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
        self.spawn("copy", async move {
            let result = component_snapshots::fetch(&cluster, &module, digest).await;
            let input = Box::new(Input::Snapshot { digest, result });
            let _ = outbox.send(SupervisorEvent::Input { module, input });
        });
    }

    /// A version is decided: its copy is kept first, then the decision is written down.
    pub(super) fn save_snapshot(
        &mut self,
        name: &str,
        digest: Digest,
        component: Option<Component>,
    ) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
        let live = self.source.module_object(name);
        self.spawn("keep", async move {
            let result = match (live, component) {
                (Some(live), Some(component)) => {
                    component_snapshots::save(&cluster, &live, &component).await
                }
                // In a folder the file is all that there is.
                _ => Ok(()),
            };
            let _ = outbox.send(SupervisorEvent::SnapshotSaved { module, digest, result });
        });
    }

    /// What serves since before the host was started should have its copy.
    pub(super) fn save_missing_snapshot(&mut self, name: &str, component: Component) {
        if self.source.has_snapshot(name, component.digest) != Some(false) {
            return;
        }
        let Some(live) = self.source.module_object(name) else { return };
        let cluster = self.shared.cluster.clone();
        self.spawn("keep", async move {
            if let Err(rejection) = component_snapshots::save(&cluster, &live, &component).await {
                tracing::warn!(module = live.key.name(), "{}", rejection.message);
            }
        });
    }

    /// Writes the decision after its snapshot is kept: the Module's finalizer first, then its
    /// status; answers with `Committed`.
    pub(super) async fn commit(&mut self, name: &str, digest: Digest, kept: Result<(), Rejection>) {
        let mut result = kept;
        let finalizes =
            self.driver.report(name).is_some_and(|report| report.members.contains_key("finalizer"));
        if result.is_ok()
            && finalizes
            && let Some(live) = self.source.module_object(name)
        {
            result = teardown::add_finalizer(&self.shared.cluster.host(), &live).await;
        }
        if result.is_ok() && self.source.keeps_decisions() {
            let refused = |why: String| {
                let message =
                    format!("the decision for {} cannot be written down: {why}", digest.short());
                Err(Rejection::new("NotCommitted", message, RetryPolicy::Later))
            };
            result = match self.write_decision(name).await {
                Some(WriteOutcome::Applied) => Ok(()),
                Some(WriteOutcome::Conflict) => refused("the Module has changed".to_owned()),
                Some(WriteOutcome::Failed(why)) => refused(why),
                Some(WriteOutcome::NoObject) | None => refused("the Module is gone".to_owned()),
            };
        }
        if result.is_ok() {
            self.sweep_snapshots(name);
        }
        self.handle(name, Input::Committed { digest, result }).await;
    }

    /// Deletes the copies of versions that are neither decided nor the one before.
    pub(super) fn sweep_snapshots(&mut self, name: &str) {
        let Some(report) = self.driver.decision(name) else { return };
        let digest = |value: Option<&serde_json::Value>| {
            value.and_then(|value| value.as_str()?.parse::<Digest>().ok())
        };
        let decided = digest(report.members.get("digest"));
        let previous = digest(report.members.get("previous").and_then(|one| one.get("digest")));
        let mut kept: Vec<String> =
            decided.into_iter().chain(previous).map(|digest| snapshot_name(name, digest)).collect();
        // A copy may have been made the source, to go back to it.
        kept.extend(self.source.source_name(name));
        let (cluster, module) = (self.shared.cluster.clone(), name.to_owned());
        let copies = self.source.snapshots(name);
        self.spawn("sweep", async move {
            component_snapshots::sweep(&cluster, &module, &copies, &kept).await;
        });
    }
}
