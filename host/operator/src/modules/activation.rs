//! Activates revisions, and runs candidates without writes.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Account, Namespaces};
use innkeeper_core::PrimarySelector;
use innkeeper_modules::{Digest, Input, Revision, ValidatedSpec};

use super::event::SupervisorEvent;
use super::open_revision::{self, OpenRevision};
use super::supervisor::Supervisor;
use crate::modules::teardown;
use crate::preview;

/// The time between two searches for objects of kinds that no revision declares any more.
const LEFTOVERS_PERIOD: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Makes a revision active. The new view opens before the old one closes with the last
    /// reconcile that uses it: the caches of kinds that both read are kept.
    pub(super) fn activate(&mut self, revision: &Arc<Revision>) {
        let name = &revision.module;
        let active = self.open(revision);
        if revision.settings.service_account.is_none() {
            tracing::warn!(module = %name, "the Module names no serviceAccountName: it acts with all rights of this kubeconfig");
        }
        tracing::info!(
            module = %name, guest = %revision.guest.manifest().name, digest = &revision.guest.digest()[..12],
            version = revision.version, "revision active"
        );
        // What waits for a retry is tried soon again.
        if self.retries.remove(&**name).is_some_and(|wait| wait.is_pending()) {
            self.retry_later(name);
        }
        self.latest.previews.remove(&**name);
        self.shared.metrics.reloads.with_label_values(&[&**name, "active"]).inc();
        // Its rollback window begins next, if it has one.
        self.rollback.replaced = self.shared.module(name);
        let active = Arc::new(active);
        self.shared.serve(&active);
        if let Some(before) = self.rollback.replaced.clone()
            && teardown::is_narrowed(&before, &active)
        {
            let shared = self.shared.clone();
            self.spawn("narrow", async move {
                teardown::release_unselected(&shared, &before, &active).await;
            });
        }
        self.count_active();
        let primary = &revision.guest.manifest().primary;
        self.read_status_schema(&primary.resource());
        // A revision that was active before the host started installs nothing of itself.
        self.check_crds(name);
    }

    /// Opens the client and the view of a revision.
    fn open(&mut self, revision: &Arc<Revision>) -> OpenRevision {
        let settings: &ValidatedSpec = &revision.settings;
        let name = &revision.module;
        let of_guest = PrimarySelector::of_guest(revision.guest.manifest().selector.as_ref());
        let selector = of_guest.and(&settings.selector);
        let namespaces = if settings.namespaces.is_empty() {
            Namespaces::All
        } else {
            Namespaces::Only(settings.namespaces.clone())
        };
        let client = self.client(name, settings.service_account.as_deref());
        // Modules of one account share its caches: revoking one module closes its view only.
        let reader = match settings.service_account.as_deref() {
            Some(account) => {
                let account = Account::new(self.shared.host.account_namespace(), account);
                self.shared.cluster.as_account(&account)
            }
            None => client.clone(),
        };
        let view = self.caches.open(&reader, name, &open_revision::watched(revision), &namespaces);
        OpenRevision::new(revision.clone(), selector, client, view)
    }

    /// Runs a candidate on the present primaries, without writes.
    pub(super) fn preview(&mut self, name: &str, digest: Digest, candidate: &Arc<Revision>) {
        let account = candidate.settings.service_account.as_deref();
        if let Err(rejection) = self.account_result(name, account) {
            return self.send(name, Input::Previewed { digest, result: Err(rejection) });
        }
        tracing::info!(module = name, digest = %digest.short(), "preview started");
        let candidate = Arc::new(self.open(candidate));
        let (shared, outbox, module) = (self.shared.clone(), self.outbox.clone(), name.to_owned());
        let task = self.shared.env.spawn("preview", async move {
            let active = shared.module(&module);
            let result = preview::preview(&shared, &candidate, active.as_ref()).await;
            let result = result.map_err(|refused| {
                // A change of the definition retries it at once.
                if !refused.groups.is_empty() {
                    let (module, groups) = (module.clone(), refused.groups);
                    let _ = outbox.send(SupervisorEvent::Mismatched { module, groups });
                }
                refused.rejection
            });
            let input = Input::Previewed { digest, result };
            let _ = outbox.send(SupervisorEvent::input(module, input));
        });
        self.latest.previews.insert(name.to_owned(), (digest, task));
    }

    /// Stops to watch the kinds that only earlier revisions declared, once no object is left.
    pub(super) async fn find_leftovers(&mut self, name: &str) {
        let Some(active) = self.shared.module(name) else { return };
        if active.dropped().is_empty() {
            return;
        }
        // A reconcile of an earlier revision may be creating an object.
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

    /// Sets the gauge of active modules.
    pub(super) fn count_active(&self) {
        self.shared
            .metrics
            .modules
            .set(i64::try_from(self.shared.modules().len()).unwrap_or(i64::MAX));
    }
}
