//! What users of @name@ may rely on. `cargo test` runs the tests natively: no wasm, no cluster.

use innkeeper_sdk::kinds::{Deployment, StatefulSet};
use innkeeper_sdk::serde_json::{Value, json};
use innkeeper_sdk::testing::ReviewScenario;

use @library@::Policy;

fn replicas(count: u32) -> Value {
    json!({ "spec": { "replicas": count } })
}

fn parameters() -> Value {
    json!({ "maxReplicas": 3 })
}

#[test]
fn deployment_with_few_replicas_is_allowed() {
    ReviewScenario::<Policy>::create::<Deployment>(replicas(3))
        .parameters(parameters())
        .run()
        .is_allowed();
}

#[test]
fn deployment_with_too_many_replicas_is_denied() {
    ReviewScenario::<Policy>::create::<Deployment>(replicas(4))
        .parameters(parameters())
        .run()
        .is_denied("4 replicas are more than 3; ask for a higher limit")
        .has_cause("spec.replicas");
}

#[test]
fn deployment_that_is_scaled_too_high_is_denied() {
    ReviewScenario::<Policy>::update::<Deployment>(replicas(1), replicas(4))
        .subresource("scale")
        .parameters(parameters())
        .run()
        .is_denied("4 replicas");
}

#[test]
fn other_kind_is_not_reviewed() {
    ReviewScenario::<Policy>::create::<StatefulSet>(replicas(4))
        .parameters(parameters())
        .run()
        .is_not_reviewed();
}
