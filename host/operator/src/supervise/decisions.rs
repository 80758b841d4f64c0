//! Which revision is decided: the decision is written down, with a copy of its component, before the
//! revision reconciles its first primary.

use innkeeper_modules::driver::copy_name;
use innkeeper_modules::{Again, Component, Digest, Input, Verdict};

use super::Supervisor;
use crate::copies;
use crate::leave;
use crate::sources::{Happened, Written};

impl Supervisor {
    /// Fetches the copy of what served last.
    pub(super) fn fetch_copy(&mut self, name: &str, digest: Digest) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
        self.spawn("copy", async move {
            let result = copies::fetch(&cluster, &module, digest).await;
            let input = Box::new(Input::Copy { digest, result });
            let _ = outbox.send(Happened::Input { module, input });
        });
    }

    /// A version is decided: its copy is kept first, then the decision is written down.
    pub(super) fn keep(&mut self, name: &str, digest: Digest, component: Option<Component>) {
        let (cluster, outbox, module) =
            (self.shared.cluster.clone(), self.outbox.clone(), name.to_owned());
        let live = self.place.module_object(name);
        self.spawn("keep", async move {
            let result = match (live, component) {
                (Some(live), Some(component)) => copies::keep(&cluster, &live, &component).await,
                // In a folder the file is all that there is.
                _ => Ok(()),
            };
            let _ = outbox.send(Happened::Kept { module, digest, result });
        });
    }

    /// What serves since before the host was started should have its copy.
    pub(super) fn keep_missing(&mut self, name: &str, component: Component) {
        if self.place.has_copy(name, component.digest) != Some(false) {
            return;
        }
        let Some(live) = self.place.module_object(name) else { return };
        let cluster = self.shared.cluster.clone();
        self.spawn("keep", async move {
            if let Err(verdict) = copies::keep(&cluster, &live, &component).await {
                tracing::warn!(module = live.key.name(), "{}", verdict.message);
            }
        });
    }

    /// Writes the decision after its snapshot is kept: the Module's finalizer first, then its status;
    /// answers with `Committed`.
    pub(super) async fn commit(&mut self, name: &str, digest: Digest, kept: Result<(), Verdict>) {
        let mut result = kept;
        let finalizes =
            self.driver.report(name).is_some_and(|report| report.members.contains_key("finalizer"));
        if result.is_ok()
            && finalizes
            && let Some(live) = self.place.module_object(name)
        {
            result = leave::hold(&self.shared.cluster.host(), &live).await;
        }
        if result.is_ok() && self.place.keeps_decisions() {
            let refused = |why: String| {
                let message =
                    format!("the decision for {} cannot be written down: {why}", digest.short());
                Err(Verdict::new("NotCommitted", message, Again::Later))
            };
            result = match self.write_decision(name).await {
                Some(Written::Yes) => Ok(()),
                Some(Written::Overtaken) => refused("the Module has changed".to_owned()),
                Some(Written::No(why)) => refused(why),
                Some(Written::Nowhere) | None => refused("the Module is gone".to_owned()),
            };
        }
        if result.is_ok() {
            self.sweep_copies(name);
        }
        self.handle(name, Input::Committed { digest, result }).await;
    }

    /// Deletes the copies of versions that are neither decided nor the one before.
    pub(super) fn sweep_copies(&mut self, name: &str) {
        let Some(report) = self.driver.decision(name) else { return };
        let digest = |value: Option<&serde_json::Value>| {
            value.and_then(|value| value.as_str()?.parse::<Digest>().ok())
        };
        let decided = digest(report.members.get("digest"));
        let previous = digest(report.members.get("previous").and_then(|one| one.get("digest")));
        let mut kept: Vec<String> =
            decided.into_iter().chain(previous).map(|digest| copy_name(name, digest)).collect();
        // A copy may have been made the source, to go back to it.
        kept.extend(self.place.source_name(name));
        let (cluster, module) = (self.shared.cluster.clone(), name.to_owned());
        let copies = self.place.copies(name);
        self.spawn("sweep", async move {
            copies::sweep(&cluster, &module, &copies, &kept).await;
        });
    }
}
