//! Merges the labels of the Module's parameters into every Namespace.
//!
//! The host merges without force and unmerges labels that the parameters no longer contain.
//! Namespace is a kind of Kubernetes, so the guest writes no status. A Namespace with the
//! annotation `example.innkeeper.dev/plain: "true"` gets no labels.

use innkeeper_sdk::serde_json::json;
use innkeeper_sdk::{
    Apply as _, Context, Describe, Desired, Labels, Manifest, Metadata, Observed, Outcome, Policy,
    Reconciler, kind,
};
use serde::{Deserialize, Serialize};

/// The annotation of a Namespace that gets no labels.
pub const PLAIN: &str = "example.innkeeper.dev/plain";

/// A Namespace, as the guest reads it and as it merges labels into it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Namespace {
    /// Metadata.
    pub metadata: Metadata,
}

kind!(Primary + Apply for Namespace, "v1", "namespaces", Cluster);

/// The parameters of the Module.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Labels of every Namespace.
    pub labels: Labels,
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Namespace;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Namespace>("labels", env!("CARGO_PKG_VERSION"))
            .merges_into::<Namespace>()
            .parameters(json!({
                "type": "object",
                "required": ["labels"],
                "additionalProperties": false,
                "properties": {
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            }))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Namespace>) -> Outcome {
        let Ok(parameters) = observed.parameters::<Parameters>() else {
            // Cannot happen: the host validates the parameters against the schema.
            return Desired::new().partial();
        };
        let namespace = observed.primary();
        let plain = namespace.metadata.annotations.get(PLAIN).is_some_and(|value| value == "true");
        if plain || parameters.labels.is_empty() {
            return Desired::new().complete();
        }
        let merged = Namespace { metadata: Metadata::named(observed.name()) };
        Desired::new().object_with(merged.labels(&parameters.labels), [Policy::Merge]).complete()
    }
}

innkeeper_sdk::export!(Guest);
