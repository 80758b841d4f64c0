//! Metrics for Prometheus. A metric with the meaning of one of controller-runtime or client-go has
//! its name and labels, so that dashboards for these work; the others are named `innkeeper_...`.
//! All metrics of a module have the label `module`. The values of labels are names of modules and
//! kinds, and fixed words, never names of objects.

use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

/// The name and the help of a metric.
const PARTIAL_ANSWERS: (&str, &str) = (
    "innkeeper_guest_partial_answers_total",
    "Guest calls with a partial answer, after which the host deletes nothing, by module.",
);

/// The metrics of one operator.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// Reconciles by module and result.
    pub reconciles: IntCounterVec,
    /// Seconds of a reconcile, by module.
    pub reconcile_seconds: HistogramVec,
    /// Running reconciles, by module.
    pub active: IntGaugeVec,
    /// Ready requests, by module.
    pub depth: IntGaugeVec,
    /// Seconds in the sandbox, by module.
    pub sandbox_seconds: HistogramVec,
    /// Failed calls of guests by module and reason.
    pub guest_failures: IntCounterVec,
    /// Partial answers of guests by module.
    pub partial_answers: IntCounterVec,
    /// Writes by module and verb.
    pub writes: IntCounterVec,
    /// Bytes of the records of reads, by module.
    pub recorded_read_bytes: IntGaugeVec,
    /// Objects of update groups that are not updated, by module.
    pub outdated_objects: IntGaugeVec,
    /// Objects in the caches by kind.
    pub cache_objects: IntGaugeVec,
    /// Bytes of the objects in the caches by kind.
    pub cache_bytes: IntGaugeVec,
    /// Swaps and refusals of modules by module and result.
    pub reloads: IntCounterVec,
    /// Components loaded through the code cache by result.
    pub code_cache: IntCounterVec,
    /// Modules with an active revision.
    pub modules: IntGauge,
    /// Seconds that a request waited for a permit of the sandbox.
    pub permit_wait_seconds: Histogram,
}

/// From 20 microseconds to half a minute.
const BUCKETS: [f64; 14] =
    [0.00002, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0];

impl Metrics {
    /// New metrics, all zero.
    ///
    /// # Errors
    /// If two of them have one name, which is a mistake in this file.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| -> Result<_, prometheus::Error> {
            let counter = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| -> Result<_, prometheus::Error> {
            let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let seconds =
            |name: &str, help: &str| HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
        let histogram = |name: &str, help: &str, labels: &[&str]| -> Result<_, prometheus::Error> {
            let histogram = HistogramVec::new(seconds(name, help), labels)?;
            registry.register(Box::new(histogram.clone()))?;
            Ok(histogram)
        };
        let modules = IntGauge::new("innkeeper_modules_serving", "Modules that serve.")?;
        registry.register(Box::new(modules.clone()))?;
        let permit_wait_seconds = Histogram::with_opts(seconds(
            "innkeeper_guest_permit_wait_duration_seconds",
            "Seconds that guest calls waited for a permit to run.",
        ))?;
        registry.register(Box::new(permit_wait_seconds.clone()))?;
        Ok(Self {
            reconciles: counter(
                "controller_runtime_reconcile_total",
                "Reconciles by module and result (success, requeue_after, requeue, error).",
                &["controller", "module", "result"],
            )?,
            reconcile_seconds: histogram(
                "controller_runtime_reconcile_time_seconds",
                "Time of a reconcile, from its first round to its report.",
                &["controller", "module"],
            )?,
            active: gauge(
                "controller_runtime_active_workers",
                "Reconciles under way.",
                &["controller", "module"],
            )?,
            depth: gauge(
                "workqueue_depth",
                "Primaries that wait for a reconcile.",
                &["module", "name"],
            )?,
            sandbox_seconds: histogram(
                "innkeeper_guest_call_duration_seconds",
                "Seconds of one call of a guest.",
                &["module"],
            )?,
            guest_failures: counter(
                "innkeeper_guest_failures_total",
                "Guest calls that failed, by module and reason.",
                &["module", "reason"],
            )?,
            partial_answers: counter(PARTIAL_ANSWERS.0, PARTIAL_ANSWERS.1, &["module"])?,
            writes: counter(
                "innkeeper_writes_total",
                "Writes to the API server by module and verb (create, apply, merge, unmerge, \
                 delete, add_finalizer, remove_finalizer, status, event).",
                &["module", "verb"],
            )?,
            recorded_read_bytes: gauge(
                "innkeeper_recorded_read_bytes",
                "Bytes of the records of what the runs of a module read.",
                &["module"],
            )?,
            outdated_objects: gauge(
                "innkeeper_outdated_objects",
                "Objects of update groups that are not as they are desired.",
                &["module"],
            )?,
            cache_objects: gauge(
                "innkeeper_cache_objects",
                "Objects in the caches.",
                &["resource"],
            )?,
            cache_bytes: gauge(
                "innkeeper_cache_bytes",
                "Bytes of the compressed texts of the objects in the caches, without indexes.",
                &["resource"],
            )?,
            reloads: counter(
                "innkeeper_module_rollouts_total",
                "Revisions of a module that became active or were refused, by result (active, refused).",
                &["module", "result"],
            )?,
            code_cache: counter(
                "innkeeper_code_cache_total",
                "Components loaded through the cache of compiled code by result (hit, miss, \
                 refused: what was there could not be trusted); and entries stored and evicted.",
                &["result"],
            )?,
            modules,
            permit_wait_seconds,
            registry,
        })
    }

    /// Counts a reconcile.
    pub fn reconciled(&self, module: &str, result: &str, time: Duration) {
        self.reconciles.with_label_values(&[module, module, result]).inc();
        self.reconcile_seconds.with_label_values(&[module, module]).observe(time.as_secs_f64());
    }

    /// Counts a write.
    pub fn wrote(&self, module: &str, verb: &str) {
        self.writes.with_label_values(&[module, verb]).inc();
    }

    /// The number of writes so far.
    pub fn written(&self, module: &str, verb: &str) -> u64 {
        self.writes.with_label_values(&[module, verb]).get()
    }

    /// All metrics in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "the figures cannot be written");
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_with_their_labels() {
        let metrics = Metrics::new().unwrap();
        metrics.reconciled("podroute", "success", Duration::from_millis(3));
        metrics.wrote("podroute", "apply");
        let text = metrics.text();
        for line in [
            r#"controller_runtime_reconcile_total{controller="podroute",module="podroute",result="success"} 1"#,
            r#"controller_runtime_reconcile_time_seconds_bucket{controller="podroute",module="podroute",le="0.005"} 1"#,
            r#"innkeeper_writes_total{module="podroute",verb="apply"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
