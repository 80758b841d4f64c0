//! The preview of a policy on existing objects and recent requests.

use innkeeper_modules::Digest;
use innkeeper_operator::preview::policy::TIMEOUTS_MAX;
use innkeeper_tiny_guests::{ALLOWED, POLICY_MANIFEST, Tiny};
use serde_json::{Value, json};

use crate::support::reviewing::{Reviewing, create};
use crate::support::{Script, Setup, Stage, block_on, config_map};

/// A verdict that denies.
const DENIED: &str = r#"{"allowed":false,"message":"bad value","causes":[{"field":"data.value","message":"is bad"}]}"#;

/// A policy that denies objects with the text `bad-value`.
fn denying() -> Tiny {
    Tiny::deciding("bad-value", DENIED)
}

/// A module whose policy allows everything, in a namespace with two ConfigMaps.
fn setup(policy: &Value) -> Setup {
    Setup::of_component(Tiny::policy(ALLOWED).component())
        .spec(json!({ "policy": policy }))
        .object(config_map("bad", "bad-value"))
        .object(config_map("good", "value"))
}

async fn status(stage: &Stage) -> Value {
    stage.module().await["status"].clone()
}

/// Approves a digest as a user does.
async fn approve(stage: &Stage, digest: &Value) {
    stage
        .merge_module(&json!({"metadata": {"annotations": {"innkeeper.dev/approve": digest}}}))
        .await;
}

#[test]
fn candidate_that_denies_an_existing_object_is_held_until_it_is_approved() {
    block_on(async {
        // Given a policy that allows all.
        let stage = setup(&json!({})).start().await;
        let active = status(&stage).await["digest"].clone();

        // When a candidate denies one of the existing objects.
        stage.push_component(&denying().component()).await;

        // Then it is held, and the status says what it denies.
        let message = stage.until_module("Held", "True", "WouldDeny").await;
        let expected = "rollout.maxNewlyDenied is 0; for example ConfigMap ns/bad (bad value; data.value: is bad)";
        assert!(message.contains("it would deny 1 of ") && message.contains(expected), "{message}");
        let held = status(&stage).await;
        assert_eq!(held["digest"], active);
        let preview = &held["candidate"]["policy"];
        assert_eq!((&preview["newlyDenied"], &preview["newlyAllowed"]), (&json!(1), &json!(0)));
        assert_eq!(preview["reviewed"], preview["objects"]);
        assert_eq!(
            preview["examples"],
            json!([{"decision": "Deny", "object": "ConfigMap ns/bad",
                "details": ["bad value", "data.value: is bad"]}])
        );

        // When a user approves it, then it is active, and the status keeps the preview.
        approve(&stage, &held["candidate"]["digest"]).await;
        stage.until_module("Held", "False", "NoApprovalNeeded").await;
        let approved = status(&stage).await;
        assert_eq!(approved["digest"], held["candidate"]["digest"]);
        assert_eq!(approved["preview"]["policy"]["newlyDenied"], 1);

        // When the next candidate allows it again, then nothing holds it.
        stage.push_component(&Tiny::policy(ALLOWED).component()).await;
        stage.until_decided().await;
        let preview = status(&stage).await["preview"]["policy"].clone();
        assert_eq!((&preview["newlyDenied"], &preview["newlyAllowed"]), (&json!(0), &json!(1)));
    });
}

#[test]
fn limits_of_the_rollout_and_other_modes_let_a_candidate_deny() {
    block_on(async {
        for (policy, rollout) in [
            (json!({}), json!({"maxNewlyDenied": 1})),
            (json!({}), json!({"strategy": "Immediate"})),
            (json!({"mode": "Warn"}), json!({})),
            (json!({"mode": "Audit"}), json!({})),
        ] {
            let stage = setup(&policy).start().await;
            stage.merge_module(&json!({"spec": {"rollout": rollout}})).await;
            stage.push_component(&denying().component()).await;
            stage.until_decided().await;
            let status = status(&stage).await;
            let denied = &status["preview"]["policy"]["newlyDenied"];
            let is_previewed = rollout["strategy"].is_null();
            assert_eq!(*denied, if is_previewed { json!(1) } else { Value::Null }, "{rollout}");
        }
        // One namespace with the mode Enforce is enough.
        let production = json!({"key": "env", "operator": "In", "values": ["production"]});
        let policy = json!({"mode": "Audit",
            "overrides": [{"namespaces": production, "mode": "Enforce"}]});
        let stage = setup(&policy).start().await;
        stage.push_component(&denying().component()).await;
        stage.until_module("Held", "True", "WouldDeny").await;
    });
}

#[test]
fn first_policy_of_a_module_is_held_if_it_denies_what_exists() {
    block_on(async {
        // Given a module that only reconciles.
        let stage = Setup::new(Script::new()).object(config_map("bad", "bad-value")).start().await;

        // When it becomes a policy with the mode Enforce.
        stage.merge_module(&json!({"spec": {"policy": {}}})).await;
        stage.push_component(&denying().component()).await;

        // Then it is held.
        stage.until_module("Held", "True", "WouldDeny").await;
        assert_eq!(status(&stage).await["candidate"]["policy"]["newlyDenied"], 1);
    });
}

#[test]
fn objects_that_the_settings_do_not_select_are_not_previewed() {
    block_on(async {
        let named = |operator: &str| {
            json!({"namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": operator, "values": ["ns"]}]}})
        };
        let labelled = json!({"namespaceSelector": {"matchLabels": {"env": "production"}}});
        let objects = json!({"objectSelector": {"matchLabels": {"team": "a"}}});
        for (policy, reviewed) in
            [(named("In"), true), (named("NotIn"), false), (labelled, false), (objects, false)]
        {
            let stage = setup(&policy).start().await;
            stage.push_component(&denying().component()).await;
            let (type_, held, reason) = if reviewed {
                ("Held", "True", "WouldDeny")
            } else {
                ("Ready", "False", "PolicyNotActive")
            };
            stage.until_module(type_, held, reason).await;
        }
        // The label of the namespace, as the host reads it.
        let policy = json!({"namespaceSelector": {"matchLabels": {"env": "production"}}});
        let stage = setup(&policy).start().await;
        let labels = json!({"metadata": {"labels": {"env": "production"}}});
        stage.merge_at("/api/v1/namespaces/ns", &labels).await;
        stage.push_component(&denying().component()).await;
        stage.until_module("Held", "True", "WouldDeny").await;
    });
}

#[test]
fn kind_that_the_account_may_not_list_is_left_out_by_name() {
    block_on(async {
        let stage = setup(&json!({})).start().await;
        let manifest = POLICY_MANIFEST
            .replace(r#""resources":["configmaps"]"#, r#""resources":["configmaps","secrets"]"#);
        stage.push_component(&Tiny::policy(ALLOWED).manifest(&manifest).component()).await;
        stage.until_decided().await;
        let preview = status(&stage).await["preview"]["policy"].clone();
        let left_out = preview["leftOut"].as_array().unwrap();
        assert_eq!(left_out.len(), 1, "{left_out:?}");
        assert!(left_out[0].as_str().unwrap().starts_with("secrets: "), "{left_out:?}");
        assert_ne!(preview["reviewed"], 0);
    });
}

#[test]
fn different_change_is_counted_and_holds_nothing() {
    block_on(async {
        let labelled = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "one", "labels": {"app": "a"}}});
        let setup = Setup::of_component(Tiny::labelling("team", "a").component());
        let stage = setup.spec(json!({"policy": {}})).object(labelled).start().await;
        stage.push_component(&Tiny::labelling("team", "b").component()).await;
        stage.until_decided().await;
        let preview = status(&stage).await["preview"]["policy"].clone();
        assert_eq!(preview["newlyChanged"], 1, "{preview}");
        assert_eq!(preview["examples"][0]["details"], json!([".metadata.labels.team"]));
    });
}

#[test]
fn recent_request_that_a_candidate_denies_holds_it() {
    block_on(async {
        // Given a policy that has allowed two requests.
        let setup = Setup::of_component(Tiny::policy(ALLOWED).component());
        let stage = setup.spec(json!({"policy": {}})).start().await;
        let replica = Reviewing::start(&stage).await;
        for (name, value) in [("one", "bad-value"), ("two", "value")] {
            let request = create("ConfigMap", "configmaps", name, &json!({ "value": value }));
            replica.review(&request).await;
        }

        // When a candidate denies one of them.
        stage.push_component(&denying().component()).await;

        // Then it is held for the request.
        let message = stage.until_module("Held", "True", "WouldDeny").await;
        assert!(message.contains("2 recent requests"), "{message}");
        assert!(message.contains("for example CREATE configmaps ns/one (bad value"), "{message}");
        assert_eq!(status(&stage).await["candidate"]["policy"]["requests"], 2);

        // When the Module goes, then so do the requests.
        stage.delete_module().await;
        stage.pass(60).await;
        assert_eq!(replica.policies.active().requests().bytes("scripts"), (0, 0));
        replica.end().await;
    });
}

#[test]
fn recent_request_that_the_settings_leave_out_holds_no_candidate() {
    block_on(async {
        // Given a policy that has allowed a request, and now leaves out its namespace.
        let setup = Setup::of_component(Tiny::policy(ALLOWED).component());
        let stage = setup.spec(json!({"policy": {}})).start().await;
        let replica = Reviewing::start(&stage).await;
        let bad = json!({ "value": "bad-value" });
        replica.review(&create("ConfigMap", "configmaps", "one", &bad)).await;
        let selector = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["ns"]}]});
        stage.merge_module(&json!({"spec": {"policy": {"namespaceSelector": selector}}})).await;
        stage.pass(20).await;

        // When a candidate would deny the request.
        let candidate = denying().component();
        stage.push_component(&candidate).await;

        // Then it becomes active, since it does not get such requests.
        stage.until_decided().await;
        let status = status(&stage).await;
        assert_eq!(status["digest"], Digest::of(&candidate).to_string(), "{status:#}");
        replica.end().await;
    });
}

#[test]
fn value_of_a_secret_is_in_no_kept_request() {
    block_on(async {
        let manifest = POLICY_MANIFEST.replace(r#"["configmaps"]"#, r#"["configmaps","secrets"]"#);
        let setup = Setup::of_component(Tiny::policy(ALLOWED).manifest(&manifest).component());
        let stage = setup.spec(json!({"policy": {}})).start().await;
        let replica = Reviewing::start(&stage).await;
        let mut request = create("Secret", "secrets", "one", &json!({"key": "aHVudGVyMg=="}));
        request["object"]["stringData"] = json!({"other": "hunter2"});
        request["operation"] = json!("UPDATE");
        request["oldObject"] = request["object"].clone();
        replica.review(&request).await;
        let kept = replica.policies.active().requests().of("scripts");
        assert_eq!(kept.len(), 1);
        let text = format!("{kept:?}");
        assert!(text.matches("stringData").count() == 2, "{text}");
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg=="), "{text}");
        replica.end().await;
    });
}

#[test]
fn candidate_that_never_answers_is_asked_a_few_times_only() {
    block_on(async {
        let mut setup = setup(&json!({}));
        for index in 0..20 {
            setup = setup.object(config_map(&format!("c{index}"), "value"));
        }
        let stage = setup.start().await;
        stage.merge_module(&json!({"spec": {"limits": {"timeout": "10ms"}}})).await;
        stage.pass(10).await;
        let endless = Tiny::policy(ALLOWED).review_wat("(loop $l (br $l))");
        stage.push_component(&endless.component()).await;
        let message = stage.until_module("Held", "True", "WouldFail").await;
        assert!(message.contains("longer than 10ms"), "{message}");
        let preview = status(&stage).await["candidate"]["policy"].clone();
        assert_eq!(preview["newlyFailing"], TIMEOUTS_MAX);
        assert_eq!(preview["reviewed"], TIMEOUTS_MAX);
    });
}
