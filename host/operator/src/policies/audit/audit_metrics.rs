//! Metrics of the audit.

use std::time::Duration;

use innkeeper_core::audit::{AuditCounts, AuditResult};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

/// From 50 microseconds to the longest time of a review.
const BUCKETS: [f64; 9] = [0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.05, 0.5, 5.0, 30.0];

/// The value of the label `result` of objects that wait for a review.
const PENDING: &str = "pending";

/// The results that the gauge shows, whatever their number.
const SHOWN: [AuditResult; 4] =
    [AuditResult::Pass, AuditResult::Fail, AuditResult::Warn, AuditResult::Error];

/// The metrics of the audit. A standby has none of the gauge.
#[derive(Clone, Debug)]
pub(in crate::policies) struct AuditMetrics {
    objects: IntGaugeVec,
    reviews: IntCounterVec,
    seconds: HistogramVec,
}

impl AuditMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// If another metric has one of their names.
    pub(in crate::policies) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let objects = IntGaugeVec::new(
            Opts::new(
                "innkeeper_policy_audit_objects",
                "Existing objects by module and result of their last review (passed, denied, \
                 warned, failed), and those that wait for one (pending).",
            ),
            &["module", "result"],
        )?;
        let reviews = IntCounterVec::new(
            Opts::new(
                "innkeeper_policy_audit_reviews_total",
                "Reviews of existing objects by module and result.",
            ),
            &["module", "result"],
        )?;
        let seconds = HistogramOpts::new(
            "innkeeper_policy_audit_review_duration_seconds",
            "Seconds of one review of an existing object, without the wait for a permit.",
        );
        let seconds = HistogramVec::new(seconds.buckets(BUCKETS.to_vec()), &["module"])?;
        registry.register(Box::new(objects.clone()))?;
        registry.register(Box::new(reviews.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self { objects, reviews, seconds })
    }

    /// Counts a review that took this time.
    pub(super) fn count(&self, module: &str, result: AuditResult, time: Duration) {
        self.reviews.with_label_values(&[module, result.decision()]).inc();
        self.seconds.with_label_values(&[module]).observe(time.as_secs_f64());
    }

    /// Shows how many objects of a module have which result.
    pub(super) fn show(&self, module: &str, counts: &AuditCounts, pending: usize) {
        let gauge = |result: &str, value: u64| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            self.objects.with_label_values(&[module, result]).set(value);
        };
        for result in SHOWN {
            gauge(result.decision(), counts.of(result));
        }
        gauge(PENDING, u64::try_from(pending).unwrap_or(u64::MAX));
    }

    /// Forgets the objects of a module.
    pub(super) fn forget(&self, module: &str) {
        for result in SHOWN.iter().map(|one| one.decision()).chain([PENDING]) {
            // It fails if the label values were never set.
            let _ = self.objects.remove_label_values(&[module, result]);
        }
    }
}
