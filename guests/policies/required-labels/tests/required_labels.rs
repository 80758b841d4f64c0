//! What the policy allows and denies.

use innkeeper_sdk::kinds::{ConfigMap, Deployment, Namespace};
use innkeeper_sdk::testing::ReviewScenario;
use required_labels::Policy;
use serde_json::{Value, json};

fn with_labels(labels: &Value) -> Value {
    json!({"metadata": {"name": "web", "labels": labels}, "spec": {"replicas": 1}})
}

fn parameters() -> Value {
    json!({"labels": [
        {"name": "team"},
        {"name": "tier", "values": ["back", "front"], "kinds": ["Deployment"]},
    ]})
}

fn create(labels: &Value) -> ReviewScenario<Policy> {
    ReviewScenario::create::<Deployment>(with_labels(labels)).parameters(parameters())
}

#[test]
fn object_with_all_labels_is_allowed() {
    create(&json!({"team": "shop", "tier": "front"})).run().is_allowed();
}

#[test]
fn object_without_a_label_or_with_another_value_is_denied() {
    let run = create(&json!({"tier": "middle"})).run();
    run.is_denied(
        "the label team is missing; add it; the label tier is \"middle\"; set it with one of the values \"back\", \"front\"",
    );
    run.has_cause("metadata.labels[team]").has_cause("metadata.labels[tier]");
}

#[test]
fn object_without_any_labels_is_denied() {
    ReviewScenario::<Policy>::create::<Deployment>(json!({}))
        .parameters(parameters())
        .run()
        .is_denied("the label team is missing");
}

#[test]
fn label_of_another_kind_is_not_required() {
    let namespace = with_labels(&json!({"team": "shop"}));
    ReviewScenario::<Policy>::create::<Namespace>(namespace)
        .parameters(parameters())
        .run()
        .is_allowed();
}

#[test]
fn kind_without_a_rule_is_not_reviewed() {
    ReviewScenario::<Policy>::create::<ConfigMap>(json!({}))
        .parameters(parameters())
        .run()
        .is_not_reviewed();
}

#[test]
fn update_of_an_older_object_is_warned_and_a_new_fault_is_denied() {
    let update = |old: Value, new: Value| {
        let (old, new) = (with_labels(&old), with_labels(&new));
        ReviewScenario::<Policy>::update::<Deployment>(old, new).parameters(parameters()).run()
    };
    let old = || json!({"tier": "front"});
    update(old(), old()).is_allowed().warns("the label team is missing");
    update(old(), json!({"tier": "middle"})).is_denied("the label tier is \"middle\"");
    update(json!({"team": "shop", "tier": "front"}), old()).is_denied("the label team is missing");
}

#[test]
fn object_that_is_being_deleted_is_allowed() {
    let mut object = with_labels(&json!({}));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    ReviewScenario::<Policy>::update::<Deployment>(with_labels(&json!({"team": "shop"})), object)
        .parameters(parameters())
        .run()
        .is_allowed();
}

#[test]
fn review_without_parameters_fails() {
    let object = with_labels(&json!({}));
    let run = ReviewScenario::<Policy>::create::<Deployment>(object).run();
    run.is_failed("spec.parameters of the Module: missing field `labels`");
}
