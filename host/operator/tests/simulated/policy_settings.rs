//! Other settings of a policy: they are previewed, and held if they deny what is allowed.

use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::support::{Reply, Sent, Setup, Stage, block_on, condition, config_map, refusal};

const DENIED: &str = r#"{"allowed":false,"message":"bad value"}"#;
const RECORD: &str = "/api/v1/namespaces/innkeeper-system/configmaps/innkeeper-policy-scripts";

/// A module whose policy denies an existing object, in the mode Warn.
async fn warning() -> Stage {
    let component = Tiny::deciding("bad-value", DENIED).component();
    let setup = Setup::of_component(component).spec(json!({"policy": {"mode": "Warn"}}));
    setup.object(config_map("bad", "bad-value")).start().await
}

/// The mode in the record, with which the replicas review.
async fn recorded_mode(stage: &Stage) -> Value {
    let record = stage.get(RECORD).await.unwrap();
    let data = record["data"].as_object().unwrap().values().next().unwrap();
    let record: Value = serde_json::from_str(data.as_str().unwrap()).unwrap();
    record["settings"]["policy"]["mode"].clone()
}

async fn set_mode(stage: &Stage, mode: &str) {
    stage.merge_module(&json!({"spec": {"policy": {"mode": mode}}})).await;
    stage.pass(20).await;
}

#[test]
fn mode_that_denies_what_exists_is_held_until_its_digest_is_approved() {
    block_on(async {
        // Given a policy that warns about an existing object.
        let stage = warning().await;

        // When its mode becomes Enforce.
        set_mode(&stage, "Enforce").await;

        // Then that is held, and the replicas review with the mode before.
        let message = stage.until_module("Held", "True", "WouldDeny").await;
        assert!(message.contains("it would deny 1 of "), "{message}");
        let status = stage.module().await["status"].clone();
        let held = &status["policy"]["heldSettings"];
        assert_eq!(
            (&held["reason"], &held["preview"]["newlyDenied"]),
            (&json!("WouldDeny"), &json!(1))
        );
        assert_eq!(status["policy"]["mode"], "Warn");
        assert_eq!(recorded_mode(&stage).await, "Warn");
        assert_eq!(condition(&stage.module().await, "Ready").unwrap()["reason"], "WouldDeny");

        // When another host starts, then they stay held.
        let stage = stage.stop().await.start().await;
        stage.pass(60).await;
        stage.until_module("Held", "True", "WouldDeny").await;
        assert_eq!(recorded_mode(&stage).await, "Warn");

        // When a user approves them, then the replicas review with them.
        let annotation = json!({"innkeeper.dev/approve": held["digest"]});
        stage.merge_module(&json!({"metadata": {"annotations": annotation}})).await;
        stage.until_module("Held", "False", "NoApprovalNeeded").await;
        stage.pass(10).await;
        assert_eq!(recorded_mode(&stage).await, "Enforce");
        let status = stage.module().await["status"].clone();
        assert_eq!(status["policy"]["heldSettings"], Value::Null);
    });
}

#[test]
fn held_settings_go_when_the_module_returns_to_those_before_or_allows_more_denials() {
    block_on(async {
        let stage = warning().await;
        set_mode(&stage, "Enforce").await;
        stage.until_module("Held", "True", "WouldDeny").await;
        set_mode(&stage, "Warn").await;
        stage.until_module("Held", "False", "NoApprovalNeeded").await;
        assert_eq!(recorded_mode(&stage).await, "Warn");

        set_mode(&stage, "Enforce").await;
        stage.until_module("Held", "True", "WouldDeny").await;
        stage.merge_module(&json!({"spec": {"rollout": {"maxNewlyDenied": 1}}})).await;
        stage.until_module("Held", "False", "NoApprovalNeeded").await;
        stage.pass(10).await;
        assert_eq!(recorded_mode(&stage).await, "Enforce");
    });
}

#[test]
fn looser_mode_counts_at_once_and_a_harmless_one_after_its_preview() {
    block_on(async {
        let stage = warning().await;
        set_mode(&stage, "Audit").await;
        assert_eq!(recorded_mode(&stage).await, "Audit");
        // Nothing is selected that the policy denies.
        let policy = json!({"mode": "Enforce", "objectSelector": {"matchLabels": {"team": "a"}}});
        stage.merge_module(&json!({"spec": {"policy": policy}})).await;
        stage.pass(30).await;
        assert_eq!(recorded_mode(&stage).await, "Enforce");
        stage.until_decided().await;
    });
}

#[test]
fn preview_of_settings_ends_with_the_permission_of_the_account() {
    block_on(async {
        // Given settings whose preview waits for an answer of discovery.
        let stage = warning().await;
        stage.proxy().intercept(|sent| match &*sent.path {
            "/apis" => refusal(503, "ServiceUnavailable", "not now"),
            _ => Reply::Forward,
        });
        let rules = json!([{"groups": ["", "apps"], "resources": ["configmaps", "deployments"],
            "operations": ["CREATE"]}]);
        let policy = json!({"mode": "Enforce", "rules": rules});
        stage.merge_module(&json!({"spec": {"policy": policy}})).await;
        stage.pass(20).await;

        // When its owner takes the account from the module, and discovery answers again.
        let account = "/api/v1/namespaces/innkeeper-modules/serviceaccounts/scripts";
        let allowed = |modules: Value| json!({"metadata": {"annotations": {"innkeeper.dev/allowed-modules": modules}}});
        stage.merge_at(account, &allowed(Value::Null)).await;
        stage.pass(5).await;
        stage.proxy().forward();
        stage.proxy().take();
        stage.pass(120).await;

        // Then nothing is read as the account.
        let sent = stage.proxy().take();
        let as_it: Vec<String> =
            sent.iter().filter(|one| !one.user.is_empty()).map(Sent::line).collect();
        assert_eq!(as_it, Vec::<String>::new());
        let status = stage.module().await["status"].clone();
        assert_eq!(status["policy"]["heldSettings"], Value::Null, "{status:#}");

        // When the module may act as it again, then the settings are held.
        stage.merge_at(account, &allowed(json!("scripts"))).await;
        stage.until_module("Held", "True", "WouldDeny").await;
        assert_eq!(recorded_mode(&stage).await, "Warn");
    });
}
