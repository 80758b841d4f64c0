//! The policies of one host process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use innkeeper_cluster::Env;
use innkeeper_sandbox::{Engine, Permits};
use tokio::sync::watch;
use tokio::time::Instant;

use super::active_policies::ActivePolicies;
use super::audit::audit_metrics::AuditMetrics;
use super::cache_observers::CacheObservers;
use super::metrics::ReplicaMetrics;
use super::review_metrics::ReviewMetrics;
use crate::execution::Execution;

/// The policies of one host process. It is made before the first term of leadership and lives
/// through all of them, since a standby reviews too. Clones are the same.
#[derive(Clone)]
pub struct ReplicaPolicies(Arc<Inner>);

struct Inner {
    active: ActivePolicies,
    env: Env,
    permits: Permits,
    execution: Execution,
    metrics: ReplicaMetrics,
    observers: CacheObservers,
    certificate: watch::Sender<Option<String>>,
    problems: watch::Sender<BTreeMap<String, String>>,
    reported: OnceLock<Instant>,
}

impl ReplicaPolicies {
    /// No policies yet. `engine` runs the guests, on the threads of `execution`.
    ///
    /// # Errors
    /// If the metrics cannot be registered.
    pub fn new(env: Env, engine: &Engine, execution: Execution) -> Result<Self, prometheus::Error> {
        let permits = engine.review_permits().clone();
        let (active, metrics) = (ActivePolicies::default(), ReplicaMetrics::new()?);
        Ok(Self(Arc::new(Inner {
            active,
            env,
            permits,
            execution,
            metrics,
            observers: CacheObservers::default(),
            certificate: watch::Sender::default(),
            problems: watch::Sender::default(),
            reported: OnceLock::new(),
        })))
    }

    /// The policies with which this replica reviews.
    pub fn active(&self) -> &ActivePolicies {
        &self.0.active
    }

    /// The clock.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// The permits for reviews of requests. Reconciles and reviews in the background have others,
    /// so that none of them delays a request.
    pub fn permits(&self) -> &Permits {
        &self.0.permits
    }

    /// On which thread guests run.
    pub fn execution(&self) -> Execution {
        self.0.execution
    }

    /// The metrics of reviews.
    pub(super) fn reviews(&self) -> &ReviewMetrics {
        &self.0.metrics.reviews
    }

    /// The metrics of the audit.
    pub(super) fn audit_metrics(&self) -> &AuditMetrics {
        &self.0.metrics.audit
    }

    /// Who else listens to the caches of the policies.
    pub(super) fn observers(&self) -> &CacheObservers {
        &self.0.observers
    }

    /// Which certificate this replica shows to the API server, as it reports it; `None` if it has
    /// none yet.
    pub fn certificate(&self) -> watch::Receiver<Option<String>> {
        self.0.certificate.subscribe()
    }

    /// Notes that this replica shows the certificate with this id.
    pub fn set_certificate(&self, id: &str) {
        let id = Some(id.to_owned());
        self.0.certificate.send_if_modified(|before| {
            let is_new = *before != id;
            *before = id;
            is_new
        });
    }

    /// Why this replica does not review with the newest records, by module.
    pub fn problems(&self) -> watch::Receiver<BTreeMap<String, String>> {
        self.0.problems.subscribe()
    }

    /// Notes why this replica does not review with the newest record of a module; `None` if it
    /// does, or soon will.
    pub(super) fn set_problem(&self, module: &str, problem: Option<&str>) {
        self.0.problems.send_if_modified(|problems| {
            if problems.get(module).map(String::as_str) == problem {
                return false;
            }
            match problem {
                Some(problem) => problems.insert(module.to_owned(), problem.to_owned()),
                None => problems.remove(module),
            };
            true
        });
    }

    /// Since when the leader can know what this replica reviews with; `None` before the first
    /// report.
    pub fn reported_since(&self) -> Option<Instant> {
        self.0.reported.get().copied()
    }

    /// Notes that a report was written.
    pub(super) fn note_report(&self) {
        let _ = self.0.reported.set(self.0.env.instant());
    }

    /// The metrics in Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.0.metrics.text(self.active().policies().len())
    }
}
