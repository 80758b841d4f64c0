//! What a client sees of the policies.

use std::time::Duration;

use innkeeper_tiny_guests::{ALLOWED, READ_RESULT, READS, SCRATCH, Tiny, get};
use serde_json::json;

use crate::stage::{LIMIT, Stage, block_on, config_map, maker, primary, urls};

const DENIED: &str = r#"{"allowed":false,"message":"the label team is missing"}"#;

fn denying() -> Tiny {
    Tiny::policy(DENIED)
}

#[test]
fn denied_create_shows_the_message_of_the_policy() {
    block_on(async {
        // Given a policy that denies.
        let stage = Stage::start(&[("labels", denying(), json!({"policy": {}}))]).await;
        assert_eq!(stage.urls().await, ["https://innkeeper.lab/v1/policies/labels/0"]);
        assert!(stage.lab.reviews_with("labels"));
        assert_eq!(stage.lab.policies().active().ids().len(), 1);

        // When a client creates an object, then it gets the message. Controllers create others.
        let series =
            r#"innkeeper_policy_reviews_total{decision="denied",mode="Enforce",module="labels"} "#;
        let denied = || -> u64 {
            let metrics = stage.lab.policies().metrics();
            let value = metrics.lines().find_map(|line| line.strip_prefix(series));
            value.map_or(0, |value| value.parse().unwrap())
        };
        let before = denied();
        let refusal = stage.refusal(&config_map("a", "1")).await;
        let message = "admission webhook \"labels.policy.innkeeper.dev\" denied the request: the label team is missing";
        assert_eq!(refusal, (403, message.to_owned()));
        assert_eq!(denied(), before + 1);
        assert_eq!(stage.config_map("a").await, None);

        // Then what no rule matches is admitted, and what a cluster needs to be repaired.
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
        stage.apply(&secret).await.unwrap();
        stage.api().apply(&config_map("a", "1"), "innkeeper-system").await.unwrap();
        assert_eq!(denied(), before + 1);
    });
}

#[test]
fn mutated_object_is_stored_changed() {
    block_on(async {
        let guest = Tiny::labelling("team", "a");
        let stage = Stage::start(&[("labels", guest, json!({"policy": {}}))]).await;
        stage.apply(&config_map("a", "1")).await.unwrap();
        let stored = stage.config_map("a").await.unwrap();
        assert_eq!(stored["metadata"]["labels"], json!({"app": "a", "team": "a"}));
        assert_eq!(stored["data"], json!({"value": "1"}));

        // The policy changes updates too.
        let update = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "2"},
            "metadata": {"name": "a", "labels": {"team": null}}});
        stage.apply(&update).await.unwrap();
        let stored = stage.config_map("a").await.unwrap();
        assert_eq!(stored["metadata"]["labels"], json!({"app": "a", "team": "a"}));
        assert_eq!(stored["data"], json!({"value": "2"}));
    });
}

#[test]
fn warning_reaches_the_client() {
    block_on(async {
        let warning = Tiny::policy(r#"{"allowed":true,"warnings":["it is old"]}"#);
        let modules = [
            ("old", warning, json!({"policy": {}})),
            ("labels", denying(), json!({"policy": {"mode": "Warn"}})),
        ];
        let stage = Stage::start(&modules).await;
        let (status, warnings) = stage.post(&config_map("a", "1"));
        assert_eq!(status, 201);
        let would = r#"299 - "policy labels would deny: the label team is missing""#;
        assert_eq!(warnings, [would, r#"299 - "it is old""#]);
    });
}

#[test]
fn reconciler_and_policy_settle_together() {
    block_on(async {
        // Given a module that makes ConfigMaps, and a policy that labels them.
        let labelling = Tiny::labelling("team", "a");
        let modules = [("maker", maker(), json!({})), ("labels", labelling, json!({"policy": {}}))];
        let stage = Stage::start(&modules).await;

        // When there is a primary.
        stage.apply(&primary()).await.unwrap();
        stage.lab.settle(LIMIT).await.unwrap();

        // Then its object has the label, and nobody writes any more.
        let labelled = stage.config_map("made").await.unwrap();
        assert_eq!(labelled["metadata"]["labels"]["team"], "a");
        let version = stage.lab.simulator().version();
        stage.lab.pass(Duration::from_mins(30)).await;
        assert_eq!(stage.config_map("made").await.unwrap(), labelled);
        assert_eq!(stage.lab.simulator().version(), version, "{:#?}", stage.lab.simulator().log());

        // When a user spoils both, then each of them repairs its part.
        let spoilt = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "2"},
            "metadata": {"name": "made", "labels": {"team": null}}});
        stage.apply(&spoilt).await.unwrap();
        stage.lab.settle(LIMIT).await.unwrap();
        let repaired = stage.config_map("made").await.unwrap();
        assert_eq!(repaired["data"], json!({"value": "1"}));
        assert_eq!(repaired["metadata"]["labels"], labelled["metadata"]["labels"]);
    });
}

/// A policy that reads the ConfigMap `ns/cm` and ends with `failed` and the object.
fn reading() -> Tiny {
    let code = format!(
        "{get}
         (i32.store8 (i32.const {READ_RESULT}) (i32.const 1))
         (return (i32.const {READ_RESULT}))",
        get = get()
    );
    Tiny::policy(ALLOWED).importing(READS).data(SCRATCH, "v1ConfigMapnscm").review_wat(&code)
}

#[test]
fn cluster_asks_a_policy_only_once_it_reads_what_it_declares() {
    block_on(async {
        // A preview would hold it back: the policy fails for the ConfigMap that exists.
        let spec = json!({"policy": {}, "rollout": {"strategy": "Immediate"}});
        let stage = Stage::begin(&[("reads", reading(), spec)]).await;
        stage.apply(&config_map("cm", "seen")).await.unwrap();
        stage.serves().await.unwrap();
        let (code, message) = stage.refusal(&config_map("a", "1")).await;
        assert_eq!(code, 500);
        assert!(message.contains("policy reads failed: ") && message.contains("seen"), "{message}");
    });
}

#[test]
fn same_seed_gives_the_same_log_with_policies() {
    let run = || {
        block_on(async {
            let modules = [
                ("maker", maker(), json!({})),
                ("labels", Tiny::labelling("team", "a"), json!({"policy": {}})),
                (
                    "denies",
                    denying(),
                    json!({"policy": {"objectSelector":
                    {"matchLabels": {"app": "bad"}}}}),
                ),
            ];
            let stage = Stage::start(&modules).await;
            stage.apply(&primary()).await.unwrap();
            assert_eq!(stage.refusal(&config_map("bad", "1")).await.0, 403);
            stage.lab.settle(LIMIT).await.unwrap();
            stage.lab.simulator().log()
        })
    };
    let (first, second) = (run(), run());
    assert!(first.iter().any(|line| line.contains("webhookconfigurations")), "{first:#?}");
    assert_eq!(first, second);
}

#[test]
fn configuration_goes_with_its_operator() {
    block_on(async {
        let stage = Stage::start(&[("labels", denying(), json!({"policy": {}}))]).await;
        let api = stage.api().clone();
        assert_eq!(urls(&api).await.len(), 1);
        assert!(stage.lab.end().await);
        assert_eq!(urls(&api).await, Vec::<String>::new());
        api.apply(&config_map("a", "1"), "ns").await.unwrap();
    });
}

#[test]
fn override_reviews_its_namespaces_in_its_mode() {
    block_on(async {
        let namespaces =
            json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["ns"]});
        let spec = json!({"policy": {"overrides": [{"namespaces": namespaces, "mode": "Warn"}]}});
        let stage = Stage::start(&[("labels", denying(), spec)]).await;
        assert_eq!(stage.urls().await.len(), 2);
        assert_eq!(stage.post(&config_map("a", "1")).0, 201);
        let elsewhere = stage.api().apply(&config_map("a", "1"), "default").await;
        assert!(elsewhere.unwrap_err().to_string().contains("labels.policy.innkeeper.dev"));
    });
}
