//! The guest that benches measure: each `Bench` becomes a Deployment and a Service of its own
//! name, and a status.
//!
//! Benches also run it natively, as the same functions on the same texts
//! ([`reconcile_json`]): what the sandbox costs is the difference.

use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate, Service};
use innkeeper_sdk::{
    Apply, ClusterReader, Column, Context, CustomResource, Describe, Desired, LogLevel, Manifest,
    Metadata, Observed, Outcome, Primary, RawOutcome, ReadError, Reconciler, Resource, labels,
    read,
};
use serde::{Deserialize, Serialize};

/// A Bench, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Bench {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: BenchSpec,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BenchSpec {
    /// The image of the pods.
    pub image: String,
    /// How many pods.
    #[serde(default = "one")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 0)))]
    pub replicas: i32,
}

/// What is.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BenchStatus {
    /// How many pods are ready.
    pub ready_replicas: i32,
}

fn one() -> i32 {
    1
}

impl Resource for Bench {
    const API_VERSION: &'static str = "bench.innkeeper.dev/v1";
    const KIND: &'static str = "Bench";
    const PLURAL: &'static str = "benches";
}

impl Primary for Bench {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

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

/// One run, natively: from the text of an `observed` document to the text of the outcome's
/// document (`desired`, or `failure` if the text is no document).
pub fn reconcile_json(observed: &str) -> String {
    match innkeeper_sdk::reconcile_text::<Guest>(&Nowhere, observed) {
        RawOutcome::Complete(text) | RawOutcome::Partial(text) | RawOutcome::Failed(text) => text,
    }
}

/// A world without anything: this guest reads nothing beyond what it is given.
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
