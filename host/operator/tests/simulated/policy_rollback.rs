//! The rollback window of a policy: reviews that fail return to the previous revision.

use innkeeper_admission::Reviewed;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use crate::support::reviewing::{Reviewing, create};
use crate::support::{Setup, Stage, block_on};

/// A policy that traps for a request with `poison`; another component for each name.
fn trapping(name: &str) -> Vec<u8> {
    Tiny::policy(ALLOWED).data(1_900, name).when_requested("poison", "unreachable").component()
}

async fn start(component: Vec<u8>, spec: Value) -> (Stage, Reviewing) {
    let mut spec = spec;
    spec["policy"] = json!({});
    let stage = Setup::of_component(component).spec(spec).start().await;
    let replica = Reviewing::start(&stage).await;
    (stage, replica)
}

async fn poison(replica: &Reviewing, name: &str) -> Reviewed {
    let request = create("ConfigMap", "configmaps", name, &json!({"value": "poison"}));
    replica.review(&request).await
}

async fn digest(stage: &Stage) -> Value {
    stage.module().await["status"]["digest"].clone()
}

#[test]
fn policy_whose_reviews_fail_is_rolled_back_and_rejected() {
    block_on(async {
        // Given a policy that allows all, and then one that traps for some requests.
        let (stage, replica) = start(Tiny::policy(ALLOWED).component(), json!({})).await;
        let (good, record) = (digest(&stage).await, replica.id());
        stage.push_component(&trapping("b")).await;
        stage.until_decided().await;
        let bad = digest(&stage).await;
        assert_ne!(bad, good);
        stage.pass(10).await;
        assert_ne!(replica.id(), record);

        // When such a request comes.
        assert!(matches!(poison(&replica, "one").await, Reviewed::Failed(_)));
        stage.pass(20).await;

        // Then the previous revision reviews again, and the other one is rejected.
        assert_eq!(digest(&stage).await, good);
        assert_eq!(replica.id(), record);
        assert!(matches!(poison(&replica, "one").await, Reviewed::Answer(_)));
        let rejected = stage.module().await["status"]["rejected"].clone();
        assert_eq!((&rejected[0]["digest"], &rejected[0]["reason"]), (&bad, &json!("RolledBack")));
        let message = stage.module_event("RolledBack").await;
        assert!(message.contains("1 review fails since it is active"), "{message}");
        stage.pass(300).await;
        assert_eq!(digest(&stage).await, good, "it is not tried again");
        replica.end().await;
    });
}

#[test]
fn request_that_fails_with_the_previous_revision_too_rolls_nothing_back() {
    block_on(async {
        let (stage, replica) = start(trapping("a"), json!({})).await;
        stage.push_component(&trapping("b")).await;
        stage.until_decided().await;
        stage.pass(10).await;
        let active = digest(&stage).await;
        for name in ["one", "two", "three"] {
            assert!(matches!(poison(&replica, name).await, Reviewed::Failed(_)));
            stage.pass(5).await;
        }
        assert_eq!(digest(&stage).await, active);
        replica.end().await;
    });
}

#[test]
fn failures_within_the_limit_or_after_the_window_roll_nothing_back() {
    block_on(async {
        for (rollout, wait) in [
            (json!({"maxFailures": 1}), 10),
            (json!({"rollbackWindow": "30s"}), 60),
            (json!({"rollbackWindow": "0s"}), 10),
        ] {
            let spec = json!({ "rollout": rollout });
            let (stage, replica) = start(Tiny::policy(ALLOWED).component(), spec).await;
            stage.push_component(&trapping("b")).await;
            stage.until_decided().await;
            let active = digest(&stage).await;
            stage.pass(wait).await;
            assert!(matches!(poison(&replica, "one").await, Reviewed::Failed(_)));
            stage.pass(30).await;
            assert_eq!(digest(&stage).await, active, "{rollout}");
            replica.end().await;
        }
    });
}

#[test]
fn request_that_no_policy_can_be_shown_rolls_nothing_back() {
    block_on(async {
        // Given a policy within its rollback window.
        let (stage, replica) = start(Tiny::policy(ALLOWED).component(), json!({})).await;
        stage.push_component(&trapping("b")).await;
        stage.until_decided().await;
        stage.pass(10).await;
        let active = digest(&stage).await;

        // When somebody who reaches the port sends requests that no revision can review.
        let mut request = create("ConfigMap", "configmaps", "one", &json!({}));
        request["object"]["metadata"] = json!("none");
        for _ in 0..3 {
            assert!(matches!(replica.review(&request).await, Reviewed::Failed(_)));
        }
        stage.pass(20).await;

        // Then the policy stays.
        assert_eq!(digest(&stage).await, active);
        replica.end().await;
    });
}
