//! Activates revisions, and runs candidates without writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiError, Namespaces};
use innkeeper_core::PrimarySelector;
use innkeeper_modules::driver::LostPrimaries;
use innkeeper_modules::{Digest, Input, Preview, Rejection, RetryPolicy, Revision};

use super::declared::{self, KindRejection};
use super::event::SupervisorEvent;
use super::open_revision::OpenRevision;
use super::supervisor::Supervisor;
use super::viewed_kinds;
use crate::modules::teardown;
use crate::preview::policy::preview_policy;
use crate::preview::{self, DefinitionChecks, ReconciledPrimaries};

/// The time between two searches for objects of kinds that no revision declares any more.
const LEFTOVERS_PERIOD: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Makes a revision active. The new view opens before the old one closes with the last
    /// reconcile that uses it: the caches of kinds that both read are kept. A revision without a
    /// primary opens nothing, and ends the reconciles of the one before it.
    pub(super) fn activate(&mut self, revision: &Arc<Revision>) {
        let name = &revision.module;
        let active = self.open(revision).map(Arc::new);
        if revision.spec.service_account.is_none() {
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
        self.end_preview_of_another(name, revision.guest.digest());
        self.shared.metrics.reloads.with_label_values(&[&**name, "active"]).inc();
        // Its rollback window begins next, if it has one.
        self.rollback.replaced = self.shared.module(name);
        self.rollback.replaced_policy = self.own_policy(name);
        match &active {
            Some(active) => self.shared.activate(active),
            None if self.rollback.replaced.is_some() => self.shared.deactivate(name),
            None => {}
        }
        if let Some(before) = self.rollback.replaced.clone()
            && teardown::is_narrowed(&before, active.as_deref())
        {
            let (shared, active) = (self.shared.clone(), active.clone());
            self.spawn("narrow", async move {
                teardown::release_unselected(&shared, &before, active.as_deref()).await;
            });
        }
        self.count_active();
        if let Some(active) = &active {
            self.read_status_schema(&active.primary_kind.resource());
        }
        // A revision that was active before the host started installs nothing of itself.
        self.check_crds(name);
        self.hand_over(revision);
    }

    /// Ends a preview at an activation. That of another component compared it with what was active
    /// until now, so the machine is to begin it again.
    fn end_preview_of_another(&mut self, name: &str, activated: &str) {
        let Some((digest, _)) = self.latest.previews.remove(name) else { return };
        if digest.to_string() != activated {
            let message = "another revision became active during the preview".to_owned();
            let rejection = Rejection::new("PreviewFailed", message, RetryPolicy::Later);
            self.send(name, Input::Previewed { digest, result: Err(rejection) });
        }
    }

    /// Opens the client and the view of a revision; `None` if it reconciles nothing.
    fn open(&mut self, revision: &Arc<Revision>) -> Option<OpenRevision> {
        let primary = revision.guest.manifest().primary.clone()?;
        let spec = &revision.spec;
        let name = &revision.module;
        let of_guest = PrimarySelector::of_guest(revision.guest.manifest().selector.as_ref());
        let selector = of_guest.and(&spec.selector);
        let namespaces = namespaces(&spec.namespaces);
        let client = self.client(name, spec.service_account.as_deref());
        let reader = self.cache_reader(spec.service_account.as_deref());
        let view = self.caches.open_fields(
            &reader,
            name,
            &viewed_kinds::of_revision(revision),
            &namespaces,
        );
        Some(OpenRevision::new(revision.clone(), primary, selector, client, view))
    }

    /// Runs a candidate on the present primaries, without writes. Of a candidate without a primary
    /// the host only compares the kinds that it reads with discovery.
    pub(super) fn preview(&mut self, name: &str, digest: Digest, candidate: &Arc<Revision>) {
        let account = candidate.spec.service_account.as_deref();
        if let Err(rejection) = self.account_result(name, account) {
            return self.send(name, Input::Previewed { digest, result: Err(rejection) });
        }
        tracing::info!(module = name, digest = %digest.short(), "preview started");
        let (open, guest) = (self.open(candidate).map(Arc::new), candidate.guest.clone());
        let policy = self.open_candidate(candidate);
        let reviewing = policy.as_ref().and_then(|_| self.reviewing_policy(name));
        let (host, object_checks) = (self.cluster.host(), self.limits.object_checks.clone());
        let client = self.client(name, account);
        let lost = self.driver.lost_primaries(name).map(|lost| self.open_lost(name, account, lost));
        let (shared, outbox, module) = (self.shared.clone(), self.outbox.clone(), name.to_owned());
        let task = self.shared.env.spawn("preview", async move {
            let active = shared.module(&module);
            let mut result = if let Some(candidate) = &open {
                let checks = DefinitionChecks { host: &host, object_checks: &object_checks };
                preview::preview(&shared, checks, candidate, active.as_ref()).await
            } else {
                let checked = declared::check(&host, &guest).await;
                checked.map(|()| Preview::default())
            };
            if let Ok(preview) = &mut result {
                let active = active.as_deref().map(ReconciledPrimaries::of);
                let reconciled = active.or(lost);
                let candidate = open.as_deref();
                preview.abandoned =
                    preview::abandoned(&shared, &client, reconciled.as_ref(), candidate).await;
            }
            if let (Ok(preview), Some(candidate)) = (&mut result, &policy) {
                let found = preview_policy(&shared, candidate, reviewing.as_ref()).await;
                match found {
                    Ok(found) => preview.policy = Some(found),
                    Err(error) => result = Err(unknown_kinds(&error)),
                }
            }
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

    /// Opens a view of the primaries of a revision that is lost.
    fn open_lost(
        &self,
        name: &str,
        account: Option<&str>,
        lost: LostPrimaries,
    ) -> ReconciledPrimaries {
        let reader = self.cache_reader(account);
        let namespaces = namespaces(&lost.namespaces);
        let view = self.caches.open(&reader, name, std::slice::from_ref(&lost.kind), &namespaces);
        ReconciledPrimaries::of_lost(name, lost, view)
    }

    /// Stops to watch the kinds that only earlier revisions declared, once no object is left.
    pub(super) async fn find_leftovers(&mut self, name: &str) {
        let Some(active) = self.shared.module(name) else { return };
        if active.retired_kinds().is_empty() {
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

/// The namespaces of a Module; all if it names none.
fn namespaces(named: &BTreeSet<String>) -> Namespaces {
    if named.is_empty() { Namespaces::All } else { Namespaces::Only(named.clone()) }
}

/// Why the objects that a candidate reviews are not known.
fn unknown_kinds(error: &ApiError) -> KindRejection {
    let message = format!(
        "the host cannot preview its policy: the kinds that the API server serves are not known: {error}; the host tries again"
    );
    let rejection = Rejection::new(error.reason(), message, RetryPolicy::Later);
    KindRejection { rejection, groups: BTreeSet::new() }
}
