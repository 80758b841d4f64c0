//! Settings of policies that would skip their preview, or read as the account of another module.

use innkeeper_hostile_tests::{Arena, Attack, GROUP, MODULES, block_on};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

/// A verdict that denies.
const DENIED: &str = r#"{"allowed":false,"message":"bad value"}"#;

fn path(name: &str) -> String {
    format!("/apis/innkeeper.dev/v1alpha1/modules/{name}")
}

/// A cluster with a namespace for the host's records, and a module with a policy that denies the
/// object in its namespace.
async fn arena(attack: &Attack) -> Arena {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "innkeeper-system"}});
    let arena = Arena::start(&[namespace]).await;
    let home =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attack.home()}});
    arena.apply(&home).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "bad-value"},
        "metadata": {"name": "bad", "namespace": attack.home()}});
    arena.apply(&object).await;
    arena.install(attack).await;
    arena
}

/// The mode with which the replicas review; none if there is no record.
async fn recorded_mode(arena: &Arena, name: &str) -> Option<Value> {
    let path = format!("/api/v1/namespaces/innkeeper-system/configmaps/innkeeper-policy-{name}");
    let record = arena.get(&path).await?;
    let record = record["data"]["record"].as_str().unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    Some(record["settings"]["policy"]["mode"].clone())
}

#[test]
fn policy_that_is_granted_again_denies_nothing_before_its_preview() {
    block_on(async {
        // Given a policy that only warns about an object that it would deny.
        let attack = Attack::new("again", &Tiny::deciding("bad-value", DENIED))
            .spec(json!({"policy": {"mode": "Warn"}}));
        let arena = arena(&attack).await;
        arena.module_says("again", "Loaded", "True", "SourceLoaded").await;
        arena.pass(20).await;
        assert_eq!(recorded_mode(&arena, "again").await, Some(json!("Warn")));

        // When the Module takes the consent back, and gives it again with the mode Enforce.
        arena.merge(&path("again"), &json!({"spec": {"policy": null}})).await;
        arena.pass(30).await;
        assert_eq!(recorded_mode(&arena, "again").await, None);
        arena.merge(&path("again"), &json!({"spec": {"policy": {"mode": "Enforce"}}})).await;

        // Then the policy is held, and reviews nothing.
        let message = arena.module_says("again", "Held", "True", "WouldDeny").await;
        assert!(message.contains("it would deny 1 of "), "{message}");
        arena.pass(30).await;
        assert_eq!(recorded_mode(&arena, "again").await, None);

        // When another host starts, then it stays held.
        let arena = arena.restart().await;
        arena.pass(60).await;
        arena.module_says("again", "Held", "True", "WouldDeny").await;
        assert_eq!(recorded_mode(&arena, "again").await, None);

        // When a user approves it, then it reviews.
        let held = arena.module("again").await["status"]["policy"]["heldSettings"].clone();
        let approval = json!({"innkeeper.dev/approve": held["digest"]});
        arena.merge(&path("again"), &json!({"metadata": {"annotations": approval}})).await;
        arena.module_says("again", "Held", "False", "NoApprovalNeeded").await;
        arena.pass(30).await;
        assert_eq!(recorded_mode(&arena, "again").await, Some(json!("Enforce")));
        arena.end().await;
    });
}

#[test]
fn policy_that_is_granted_again_reviews_at_once_if_it_denies_nothing() {
    block_on(async {
        let attack = Attack::new("again", &Tiny::policy(ALLOWED)).spec(json!({"policy": {}}));
        let arena = arena(&attack).await;
        arena.module_says("again", "Loaded", "True", "SourceLoaded").await;
        arena.merge(&path("again"), &json!({"spec": {"policy": null}})).await;
        arena.pass(30).await;
        arena.merge(&path("again"), &json!({"spec": {"policy": {}}})).await;
        arena.pass(30).await;
        assert_eq!(recorded_mode(&arena, "again").await, Some(json!("Enforce")));
        arena.module_says("again", "Held", "False", "NoApprovalNeeded").await;
        arena.end().await;
    });
}

#[test]
fn settings_with_the_account_of_another_module_are_not_previewed_as_it() {
    block_on(async {
        // Given a policy, and an account with all rights that lets another module act as it.
        let attack = Attack::new("thief", &Tiny::deciding("bad-value", DENIED))
            .spec(json!({"policy": {"mode": "Warn"}}));
        let arena = arena(&attack).await;
        for object in Attack::new("rich", &Tiny::policy(ALLOWED)).has_all_rights().objects() {
            let is_part =
                object["kind"] != "Module" && object["apiVersion"] != format!("{GROUP}/v1");
            if is_part {
                arena.apply(&object).await;
            }
        }
        arena.module_says("thief", "Loaded", "True", "SourceLoaded").await;

        // When the Module names that account, with settings that need a preview.
        let rules = json!([{"groups": [""], "resources": ["secrets", "configmaps"],
            "operations": ["CREATE"]}]);
        let spec = json!({"serviceAccountName": "rich", "namespaces": null,
            "policy": {"mode": "Enforce", "rules": rules}});
        arena.merge(&path("thief"), &json!({ "spec": spec })).await;
        arena.pass(120).await;

        // Then nothing is read as it.
        let account = format!("system:serviceaccount:{MODULES}:rich");
        let log = arena.log();
        let as_it: Vec<&String> = log.iter().filter(|line| line.contains(&account)).collect();
        assert!(as_it.is_empty(), "{as_it:?}");
        let status = arena.module("thief").await["status"].clone();
        assert_eq!(status["policy"]["heldSettings"], Value::Null, "{status:#}");
        assert_eq!(recorded_mode(&arena, "thief").await, Some(json!("Warn")));
        arena.end().await;
    });
}

#[test]
fn hostile_texts_of_a_preview_are_cut_and_visible_in_the_status() {
    block_on(async {
        let text = "x\n\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{200b}\u{2028}y";
        let cause = json!({"field": text.repeat(100), "message": text.repeat(1_000)});
        let verdict = json!({"allowed": false, "message": text.repeat(10_000),
            "causes": vec![cause; 40]});
        let attack =
            Attack::new("loud", &Tiny::policy(&verdict.to_string())).spec(json!({"policy": {}}));
        let arena = arena(&attack).await;
        let message = arena.module_says("loud", "Held", "True", "WouldDeny").await;
        let hides = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}".contains(c);
        assert!(!message.contains(hides) && message.len() <= 4_096, "{message:?}");
        let status = arena.module("loud").await["status"].clone();
        let examples = status["candidate"]["policy"]["examples"].as_array().unwrap();
        assert!((1..=10).contains(&examples.len()), "{status:#}");
        for example in examples {
            let details = example["details"].as_array().unwrap();
            assert!(details.len() <= 5, "{}", details.len());
            for detail in details.iter().map(|one| one.as_str().unwrap()) {
                assert!(detail.len() <= 310 && !detail.contains(hides), "{detail:?}");
            }
        }
        arena.end().await;
    });
}
