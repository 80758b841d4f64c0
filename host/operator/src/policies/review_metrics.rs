//! Metrics of reviews.

use std::time::Duration;

use innkeeper_admission::Mode;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use super::decision_kind::DecisionKind;

/// From 50 microseconds to the longest time of a review.
const BUCKETS: [f64; 14] =
    [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The metrics of the reviews of one replica.
#[derive(Clone, Debug)]
pub(super) struct ReviewMetrics {
    reviews: IntCounterVec,
    seconds: HistogramVec,
    failures: IntCounterVec,
}

impl ReviewMetrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// If another metric has one of their names.
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| -> Result<_, prometheus::Error> {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let seconds = HistogramOpts::new(
            "innkeeper_policy_review_duration_seconds",
            "Seconds from the arrival of a request to its verdict, with the wait for a permit.",
        );
        let seconds = HistogramVec::new(seconds.buckets(BUCKETS.to_vec()), &["module"])?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self {
            reviews: counter(
                "innkeeper_policy_reviews_total",
                "Reviews by module, decision (allowed, changed, denied, excluded, failed) and mode.",
                &["module", "decision", "mode"],
            )?,
            seconds,
            failures: counter(
                "innkeeper_policy_review_failures_total",
                "Reviews without a verdict, by module and reason.",
                &["module", "reason"],
            )?,
        })
    }

    /// Counts a review that took this time.
    pub(super) fn count(&self, module: &str, decision: DecisionKind, mode: Mode, time: Duration) {
        let mode = match mode {
            Mode::Enforce => "Enforce",
            Mode::Warn => "Warn",
            Mode::Audit => "Audit",
        };
        self.reviews.with_label_values(&[module, decision.as_str(), mode]).inc();
        if decision != DecisionKind::Excluded {
            self.seconds.with_label_values(&[module]).observe(time.as_secs_f64());
        }
    }

    /// Counts a review without a verdict.
    pub(super) fn count_failure(&self, module: &str, reason: &str) {
        self.failures.with_label_values(&[module, reason]).inc();
    }
}
