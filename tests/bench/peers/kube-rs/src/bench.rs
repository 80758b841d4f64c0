//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Desired state of a Bench.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.innkeeper.dev", version = "v1", kind = "Bench", plural = "benches")]
#[kube(namespaced, status = "BenchStatus")]
pub struct BenchSpec {
    /// Image of the pods.
    pub image: String,
    /// Number of pods.
    pub replicas: i32,
}

/// Observed state of a Bench.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BenchStatus {
    /// The generation that this status is about.
    pub observed_generation: Option<i64>,
    /// Number of ready pods.
    pub ready_replicas: i32,
    /// Conditions of the Bench.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    })
}
