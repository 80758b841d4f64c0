//! Guests that only review requests: the operator opens nothing for them.

use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use crate::support::{Script, Stage, block_on, complete, condition, config_map, desired};

/// A module that made a ConfigMap for a primary, and whose finalizer is on the primary.
async fn reconciler() -> Stage {
    let stage = Stage::start(Script::new().finalizes()).await;
    stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
    stage.settle().await;
    assert_eq!(finalizers(&stage).await, json!(["innkeeper.dev/scripts"]));
    stage
}

async fn finalizers(stage: &Stage) -> Value {
    stage.primary("one").await["metadata"]["finalizers"].clone()
}

fn policy() -> Vec<u8> {
    Tiny::policy(ALLOWED).component()
}

#[test]
fn module_that_becomes_a_policy_releases_its_primaries_and_keeps_what_it_made() {
    block_on(async {
        // Given a module with a primary.
        let stage = reconciler().await;

        // When its source becomes a policy, to which the Module consents.
        stage.merge_module(&json!({"spec": {"policy": {}}})).await;
        stage.push_component(&policy()).await;

        // Then the revision is held, since nobody would reconcile the primary any more.
        let message = stage.until_module("Held", "True", "WouldAbandonPrimaries").await;
        assert!(message.contains("it reconciles no kind"), "{message}");
        let digest = stage.module().await["status"]["candidate"]["digest"].clone();
        let approval = json!({"innkeeper.dev/approve": digest});
        stage.merge_module(&json!({"metadata": {"annotations": approval}})).await;

        // When a user approves it, then it is active, and its Module says that nothing sends it
        // requests.
        let message = stage.until_module("Serving", "False", "PolicyNotActive").await;
        assert!(message.contains("the host has no admission port"), "{message}");
        let module = stage.module().await;
        let ready = condition(&module, "Ready").unwrap();
        assert_eq!(
            (&ready["status"], &ready["reason"]),
            (&json!("False"), &json!("PolicyNotActive"))
        );
        stage.until_module("Healthy", "Unknown", "PolicyNotActive").await;
        assert_eq!(module["status"]["primary"], Value::Null);
        // Then the finalizer is off the primary, the object stays, and nothing is reconciled.
        stage.settle().await;
        assert_eq!(finalizers(&stage).await, Value::Null);
        let runs = stage.runs();
        stage.create("two", &complete(&desired(&[config_map("b", "1")]))).await;
        stage.pass(60).await;
        assert!(stage.config_map("a").await.is_some());
        assert_eq!((stage.config_map("b").await, stage.runs()), (None, runs));

        // When its source becomes the reconciler again, both primaries are reconciled.
        stage.merge_module(&json!({"spec": {"policy": null}})).await;
        stage.push(&Script::new().finalizes()).await;
        stage.until_module("Serving", "True", "RevisionActive").await;
        stage.settle().await;
        assert!(stage.config_map("b").await.is_some());
        assert_eq!(finalizers(&stage).await, json!(["innkeeper.dev/scripts"]));
    });
}

#[test]
fn policy_is_active_again_after_a_restart_and_goes_with_its_module() {
    block_on(async {
        // Given a module that is a policy.
        let stage = Stage::start(Script::new()).await;
        stage.merge_module(&json!({"spec": {"policy": {}}})).await;
        stage.push_component(&policy()).await;
        stage.until_module("Serving", "False", "PolicyNotActive").await;

        // When another host starts.
        let stage = stage.stop().await.start().await;
        stage.pass(30).await;

        // Then it has the same revision, and deletes nothing that the Module needs.
        assert_eq!(stage.reported_reason("Serving"), "PolicyNotActive");
        stage.until_decided().await;
        stage.delete_module().await;
        stage.until_module_gone().await;
    });
}
