//! The guest of the benchmarks: each `Bench` becomes a Deployment and a Service of its own
//! name, and a status.
//!
//! Benchmarks also run it natively on the same documents ([`reconcile_json`]): the difference is
//! the cost of the sandbox.

use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate, Service};
use innkeeper_sdk::{
    Apply, ClusterReader, Column, Context, CustomResource, Describe, Desired, LogLevel, Manifest,
    Metadata, Observed, Outcome, RawOutcome, ReadError, Reconciler, kind, labels, read,
};
use serde::{Deserialize, Serialize};

/// A Bench, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Bench {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: BenchSpec,
}

/// Desired state of a Bench.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BenchSpec {
    /// Image of the pods.
    pub image: String,
    /// Number of pods.
    #[serde(default = "one")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0)))]
    pub replicas: i32,
}

/// Observed state of a Bench.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BenchStatus {
    /// Number of ready pods.
    pub ready_replicas: i32,
}

fn one() -> i32 {
    1
}

kind!(Primary for Bench, "bench.innkeeper.dev/v1", "benches");

impl CustomResource for Bench {
    type Spec = BenchSpec;
    type Status = BenchStatus;
    const COLUMNS: &'static [Column] = &[Column::integer("Ready", ".status.readyReplicas")];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Bench>("bench", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .owns::<Service>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Bench>) -> Outcome {
        let (name, spec) = (observed.name(), &observed.primary().spec);
        let labels = labels([("app", name)]);
        let container = Container::new("app", &spec.image).port("http", 8080);
        let deployment =
            Deployment::new(name, &labels, PodTemplate::new(&labels).container(container))
                .replicas(spec.replicas)
                .labels(&labels);
        let service = Service::new(name, &labels).named_port("http", 80, "http").labels(&labels);

        let ready_replicas = observed
            .owned::<read::Deployment>(name)
            .map_or(0, |deployment| deployment.object.status.ready_replicas);
        Desired::new()
            .object(deployment)
            .object(service)
            .status(&BenchStatus { ready_replicas })
            .ready_condition(observed)
            .complete()
    }
}

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);

/// Runs the guest once, natively: takes an `observed` document, returns the document of the outcome
/// (`desired`, or `failure` if the argument is not such a document).
pub fn reconcile_json(observed: &str) -> String {
    match innkeeper_sdk::reconcile_text::<Guest>(&Nowhere, observed) {
        RawOutcome::Complete(text) | RawOutcome::Partial(text) | RawOutcome::Failed(text) => text,
    }
}

/// A reader without objects: this guest reads only its argument.
struct Nowhere;

impl ClusterReader for Nowhere {
    fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Result<String, ReadError> {
        Err(ReadError::Undeclared)
    }

    fn list(&self, _: &str, _: &str, _: &str, _: &str) -> Result<String, ReadError> {
        Err(ReadError::Undeclared)
    }

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn log(&self, _: LogLevel, _: &str) {}
}
