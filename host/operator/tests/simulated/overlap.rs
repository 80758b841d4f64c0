//! Two modules for the same primaries: the refused one takes over as soon as the other yields.

use serde_json::{Value, json};

use crate::support::{Script, Setup, Stage, block_on, condition};

/// The path of the second Module.
const OTHER: &str = "/apis/innkeeper.dev/v1alpha1/modules/others";

/// The selector of primaries with one of these values of the label `of`.
fn of(values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": "of", "operator": "In", "values": values}]})
}

/// A stage with the module `scripts` for primaries of `one` and the module `others` for those of
/// `two`, whose spec then asks for both.
async fn stage_with_an_overlap() -> Stage {
    let spec = json!({"selector": of(&["one"])});
    let stage = Setup::new(Script::new()).spec(spec).start().await;
    let account = json!({"innkeeper.dev/allowed-modules": "scripts,others"});
    stage
        .merge_at(
            "/api/v1/namespaces/innkeeper-modules/serviceaccounts/scripts",
            &json!({"metadata": {"annotations": account}}),
        )
        .await;
    stage
        .apply(&json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "others"},
            "spec": {"source": {"configMap": {"name": "scripts"}}, "selector": of(&["two"]),
                "serviceAccountName": "scripts"}}))
        .await;
    stage.pass(20).await;
    assert_eq!(ready(&stage).await, "RevisionActive");
    stage.merge_at(OTHER, &json!({"spec": {"selector": of(&["one", "two"])}})).await;
    // Longer than any backoff: nothing but the other module ends it.
    stage.pass(600).await;
    assert_eq!(ready(&stage).await, "PrimaryOverlap");
    stage
}

/// The reason of the condition Ready of the second Module.
async fn ready(stage: &Stage) -> String {
    let module = stage.get(OTHER).await.unwrap();
    let ready = condition(&module, "Ready").unwrap_or(&Value::Null);
    ready["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn overlapping_selector_is_used_when_the_other_module_selects_other_primaries() {
    block_on(async {
        let stage = stage_with_an_overlap().await;
        stage.merge_module(&json!({"spec": {"selector": of(&["three"])}})).await;
        stage.pass(2).await;
        assert_eq!(ready(&stage).await, "RevisionActive");
    });
}

#[test]
fn overlapping_selector_is_used_when_the_other_module_is_gone() {
    block_on(async {
        let stage = stage_with_an_overlap().await;
        stage.delete_module().await;
        stage.until_module_gone().await;
        stage.pass(2).await;
        assert_eq!(ready(&stage).await, "RevisionActive");
    });
}
