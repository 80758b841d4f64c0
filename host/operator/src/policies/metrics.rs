//! Metrics of a replica's policies. They outlive terms of leadership, and a standby has them too.

use prometheus::{Encoder as _, IntGauge, Registry, TextEncoder};

use super::audit::audit_metrics::AuditMetrics;
use super::review_metrics::ReviewMetrics;

/// The metrics of one replica.
#[derive(Clone, Debug)]
pub(super) struct ReplicaMetrics {
    registry: Registry,
    /// Policies that this replica reviews with.
    policies: IntGauge,
    /// Reviews.
    pub(super) reviews: ReviewMetrics,
    /// The audit.
    pub(super) audit: AuditMetrics,
}

impl ReplicaMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// If two of them have one name, which is a mistake in this file.
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let help = "Policies with which this replica reviews admission requests.";
        let policies = IntGauge::new("innkeeper_active_policies", help)?;
        registry.register(Box::new(policies.clone()))?;
        let reviews = ReviewMetrics::new(&registry)?;
        let audit = AuditMetrics::new(&registry)?;
        Ok(Self { registry, policies, reviews, audit })
    }

    /// The metrics in Prometheus' text format; `active` is the number of policies.
    pub(super) fn text(&self, active: usize) -> String {
        self.policies.set(i64::try_from(active).unwrap_or(i64::MAX));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!("the metrics of the policies cannot be written: {error}");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}
