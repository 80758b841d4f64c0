//! Writes the results of the audit as Reports and `ClusterReports`, as the host.
//!
//! It compares digests of what is to be there with those in the annotations of the reports, so an
//! unchanged audit writes nothing, also after a change of the leader. Of the reports of the
//! cluster, which may be many of other tools, it keeps the metadata only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_cluster::cache::{CacheReadError, StateChange};
use innkeeper_cluster::{
    ApiClient, ApiError, Caches, Change, KindState, Listener, Namespaces, Propagation, View, crd,
};
use innkeeper_contract::Kind;
use innkeeper_core::audit::stored::StoredReport;
use innkeeper_core::audit::{
    CLUSTER_REPORT, DIGEST_ANNOTATION, MANAGED_BY_LABEL, REPORT, Report, ReportOwner, SOURCE,
    kind_in,
};
use innkeeper_core::well_known::POLICY_LABEL;
use innkeeper_core::{Labels, Manager, Object, ObjectKey};
use tokio::sync::Notify;

use crate::modules::event::HOST_MODULE;

/// The changes in the caches of the writer.
#[derive(Default)]
pub(super) struct WriterEvents {
    wake: Notify,
    /// Whether a report of a policy has changed, or the kinds of reports that are served.
    reports: AtomicBool,
    /// The groups of kinds whose definitions have changed.
    definitions: Mutex<BTreeSet<String>>,
}

impl WriterEvents {
    /// Waits until something has changed.
    pub(super) async fn notified(&self) {
        self.wake.notified().await;
    }

    /// Whether reports have changed, or can be read otherwise, since the last call.
    pub(super) fn take_reports(&self) -> bool {
        self.reports.swap(false, Ordering::AcqRel)
    }

    /// The groups of kinds whose definitions have changed since the last call.
    pub(super) fn take_definitions(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.definitions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note_reports(&self) {
        self.reports.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Records a change of the definition of this name, as in `plural.group`.
    fn note_definition(&self, name: &str) {
        let Some((_, group)) = name.split_once('.') else { return };
        let mut groups = self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        groups.insert(group.to_owned());
        drop(groups);
        self.wake.notify_one();
    }
}

impl Listener for WriterEvents {
    fn changed(&self, change: &Change) {
        let is_of_policy = |object: &Option<Arc<Object>>| {
            object.as_ref().is_some_and(|object| object.labels.get(POLICY_LABEL).is_some())
        };
        if *change.kind == crd::kind() {
            self.note_definition(change.key.name());
        } else if is_of_policy(&change.before) || is_of_policy(&change.after) {
            self.note_reports();
        }
    }

    fn state_changed(&self, change: &StateChange) {
        tracing::info!(kind = %change.kind, state = ?change.state, "watch state of reports changed");
        if *change.kind != crd::kind() {
            self.note_reports();
        }
    }
}

/// Writes and deletes reports.
pub(super) struct ReportWriter {
    host: ApiClient,
    events: Arc<WriterEvents>,
    /// The metadata of the reports in the cluster, and of the definitions of kinds.
    view: View,
}

/// The reports of the cluster that belong to one policy. A report without a namespace is a
/// `ClusterReport`.
type LiveReports = BTreeMap<ObjectKey, Arc<Object>>;

impl ReportWriter {
    /// A writer that reads and sends as the host.
    pub(super) fn new(host: ApiClient) -> Self {
        let events = Arc::new(WriterEvents::default());
        let caches = Caches::new(host.env().clone(), events.clone());
        let kinds = [REPORT.clone(), CLUSTER_REPORT.clone(), crd::kind()];
        let view = caches.open_metadata(&host, HOST_MODULE, &kinds, &Namespaces::All);
        Self { host, events, view }
    }

    /// The changes in the caches of the writer.
    pub(super) fn events(&self) -> &Arc<WriterEvents> {
        &self.events
    }

    /// Whether the API server serves reports, as far as it is known.
    pub(super) fn is_served(&self) -> bool {
        let states = self.view.states();
        kinds().iter().any(|kind| states.get(*kind) == Some(&KindState::Synced))
    }

    /// Writes and deletes reports of a module until the cluster has exactly `reports`. Writes none
    /// of a kind that the API server does not serve. Returns whether the cluster has them; false if
    /// another round is needed. A report that a namespace refuses holds back no other one.
    ///
    /// # Errors
    /// If a request fails, or an object of another tool has the name of a report: the first error.
    pub(super) async fn write(
        &self,
        owner: &ReportOwner<'_>,
        reports: Vec<Report<'_>>,
    ) -> Result<bool, ApiError> {
        let mut is_complete = true;
        let mut live = LiveReports::new();
        for kind in kinds() {
            match self.live(kind, owner.module) {
                Ok(found) => live.extend(found),
                Err(CacheReadError::NotServed) => {}
                Err(CacheReadError::NotSynced(_)) => return Ok(false),
                Err(error) => {
                    let message = format!("the reports cannot be read: {error}");
                    return Err(ApiError::Other { code: 0, message });
                }
            }
        }
        let states = self.view.states();
        let mut refused = Ok(());
        for report in reports {
            let before = live.remove(&ObjectKey::new(report.namespace, &report.name));
            if states.get(report.kind()) != Some(&KindState::Synced) {
                continue;
            }
            let digest = before.as_ref().and_then(|object| object.annotation(DIGEST_ANNOTATION));
            if digest.as_deref() == Some(&*report.digest(owner)) {
                continue;
            }
            match self.write_one(owner, &report, before.is_some()).await {
                Ok(is_written) => is_complete &= is_written,
                Err(error) if concerns_all(&error) => return Err(error),
                Err(error) => refused = refused.and(Err(error)),
            }
        }
        let outdated = self.delete_all(live.into_values()).await;
        refused.and(outdated).map(|()| is_complete)
    }

    /// Deletes the reports of modules for which `is_audited` gives false.
    ///
    /// # Errors
    /// If a request fails: the first error.
    pub(super) async fn sweep(&self, is_audited: impl Fn(&str) -> bool) -> Result<(), ApiError> {
        let is_orphan = |labels: &Labels| {
            is_of_host(labels) && labels.get(POLICY_LABEL).is_some_and(|one| !is_audited(one))
        };
        let snapshot = self.view.snapshot();
        // A kind that cannot be read has no reports, or a later sweep deletes them.
        let found = kinds().map(|kind| snapshot.list(kind, None, &is_orphan).unwrap_or_default());
        self.delete_all(found.into_iter().flatten()).await
    }

    /// Deletes reports. A report that a namespace refuses to delete holds back no other one.
    ///
    /// # Errors
    /// If a request fails: the first error.
    async fn delete_all(&self, reports: impl Iterator<Item = Arc<Object>>) -> Result<(), ApiError> {
        let mut refused = Ok(());
        for report in reports {
            match self.delete(&report).await {
                Err(error) if concerns_all(&error) => return Err(error),
                result => refused = refused.and(result),
            }
        }
        refused
    }

    /// The reports of a module in the cluster, of one kind.
    fn live(&self, kind: &Kind, module: &str) -> Result<LiveReports, CacheReadError> {
        let is_of_module =
            |labels: &Labels| is_of_host(labels) && labels.get(POLICY_LABEL) == Some(module);
        let found = self.view.snapshot().list(kind, None, &is_of_module)?;
        Ok(found.into_iter().map(|object| (object.key.clone(), object)).collect())
    }

    /// Writes one report; false if somebody else wrote it at the same time.
    async fn write_one(
        &self,
        owner: &ReportOwner<'_>,
        report: &Report<'_>,
        is_there: bool,
    ) -> Result<bool, ApiError> {
        let (kind, now) = (report.kind(), self.host.env().now());
        if !is_there {
            let document = report.document(owner, &[], now);
            match self.host.create(kind, report.namespace, &document).await {
                Ok(()) => return Ok(true),
                // Its objects go as well.
                Err(ApiError::NamespaceNotFound { .. } | ApiError::NamespaceTerminating { .. }) => {
                    return Ok(true);
                }
                // The cache is behind.
                Err(ApiError::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let key = ObjectKey::new(report.namespace, &report.name);
        let stored: StoredReport = match self.host.get_as(kind, &key).await {
            Ok(stored) => stored,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let module = stored.metadata.labels.get(POLICY_LABEL);
        if module.map(String::as_str) != Some(owner.module) {
            let message = format!(
                "{} {key} has no label {POLICY_LABEL}={}, so somebody else has made it; delete it",
                kind.kind, owner.module
            );
            return Err(ApiError::Invalid { message });
        }
        let mut document = report.document(owner, &stored.results, now);
        document["metadata"]["resourceVersion"] = stored.metadata.resource_version.into();
        match self.host.merge_patch(kind, &key, &Manager::Host, &document).await {
            Ok(_) => Ok(true),
            Err(ApiError::Conflict { .. } | ApiError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, report: &Object) -> Result<(), ApiError> {
        let Object { key, uid, .. } = report;
        let kind = kind_in(key.namespace());
        match self.host.delete(kind, key, uid, Propagation::Background).await {
            Ok(_) | Err(ApiError::UidMismatch { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether a request for another report would fail too: the API server does not answer, or the host
/// lacks a right. Quotas, policies and objects of others concern one namespace.
fn concerns_all(error: &ApiError) -> bool {
    let is_of_server = matches!(
        error,
        ApiError::TooManyRequests { .. }
            | ApiError::Unavailable { .. }
            | ApiError::Timeout { .. }
            | ApiError::OutcomeUnknown { .. }
            | ApiError::Unauthorized { .. }
            | ApiError::NotServed { .. }
            | ApiError::KindMismatch { .. }
    );
    is_of_server || error.missing_right().is_some()
}

/// The kinds of reports.
fn kinds() -> [&'static Kind; 2] {
    [&REPORT, &CLUSTER_REPORT]
}

/// Whether the host has made a report.
fn is_of_host(labels: &Labels) -> bool {
    labels.get(MANAGED_BY_LABEL) == Some(SOURCE)
}
