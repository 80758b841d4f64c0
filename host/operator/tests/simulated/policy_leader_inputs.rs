//! What others may have written where the leader of policies reads.

use innkeeper_lab::Content;
use innkeeper_operator::policies::ReplicaName;
use serde_json::{Value, json};

use crate::support::policy_cluster::{HOST, lease_path};
use crate::support::policy_leading::{Leader, SECRET, WEBHOOKS, reviewing, stage, webhooks};
use crate::support::{Stage, block_on};

#[test]
fn configuration_of_somebody_else_is_left_alone_and_named() {
    block_on(async {
        let stage = stage().await;
        let foreign = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "innkeeper-policy-scripts"}, "webhooks": []});
        let path = WEBHOOKS.rsplit_once('/').unwrap().0;
        stage.api().send("POST", path, Content::Json, &foreign).await.unwrap();
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(20).await;
        assert_eq!(webhooks(&stage).await["metadata"]["labels"], Value::Null);
        let problem = leader.state().problem.unwrap();
        assert_eq!(problem.reason, "WebhooksNotWritten");
        assert!(problem.message.contains("somebody else has made it"), "{}", problem.message);
        leader.end().await;
    });
}

/// Makes a configuration without webhooks, with this name and label.
async fn make_configuration(stage: &Stage, name: &str, label: &str) {
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"innkeeper.dev/policy": label}}, "webhooks": []});
    let path = WEBHOOKS.rsplit_once('/').unwrap().0;
    stage.api().send("POST", path, Content::Json, &object).await.unwrap();
}

#[test]
fn configuration_that_imitates_one_of_the_host_is_replaced_or_deleted_by_its_name_and_label() {
    block_on(async {
        let stage = stage().await;
        let path = |name: &str| WEBHOOKS.replace("innkeeper-policy-scripts", name);
        make_configuration(&stage, "innkeeper-policy-scripts", "scripts").await;
        make_configuration(&stage, "innkeeper-policy-other", "other").await;
        make_configuration(&stage, "innkeeper-policy-a", "b").await;
        make_configuration(&stage, "of-somebody", "scripts").await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(30).await;
        let of_policy = webhooks(&stage).await;
        assert_eq!(of_policy["metadata"]["ownerReferences"][0]["name"], "scripts");
        assert_eq!(of_policy["webhooks"].as_array().unwrap().len(), 1);
        assert!(stage.get(&path("innkeeper-policy-other")).await.is_none(), "no policy");
        for left in ["innkeeper-policy-a", "of-somebody"] {
            assert!(stage.get(&path(left)).await.is_some(), "{left}");
        }
        leader.end().await;
    });
}

#[test]
fn secret_that_is_no_certificate_is_shown_and_never_replaced() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        let good = stage.get(SECRET).await.unwrap();
        let configuration = webhooks(&stage).await;
        let mut swapped = good["data"].clone();
        swapped["ca.key"] = good["data"]["tls.key"].clone();
        let mut large = good["data"].clone();
        large["tls.crt"] = "QUFB".repeat(100_000).into();
        for garbage in [
            json!({"ca.key": "c2VjcmV0"}),
            json!({"state": "e30="}),
            json!({"state": "//79"}),
            json!({}),
            swapped,
            large,
        ] {
            // Given a Secret with something else.
            stage.api().delete(SECRET).await.unwrap();
            let secret = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "innkeeper-admission"}, "data": garbage});
            let path = SECRET.rsplit_once('/').unwrap().0;
            stage.api().send("POST", path, Content::Json, &secret).await.unwrap();
            let before = stage.get(SECRET).await.unwrap();
            stage.pass(30).await;

            // Then it stays, with the configuration, and the Module names it without its contents.
            assert_eq!(stage.get(SECRET).await.unwrap(), before);
            assert_eq!(webhooks(&stage).await, configuration);
            let problem = leader.state().problem.unwrap();
            assert_eq!(problem.reason, "CertificatesUnreadable");
            assert!(problem.message.contains("delete the Secret"), "{}", problem.message);
            assert!(!problem.message.contains("secret\n"), "{}", problem.message);
            assert!(problem.message.len() < 1_000, "{}", problem.message.len());
        }
        // When a user deletes it, the leader makes another one.
        stage.api().delete(SECRET).await.unwrap();
        stage.pass(30).await;
        let made = stage.get(SECRET).await.unwrap();
        let bundle = &webhooks(&stage).await["webhooks"][0]["clientConfig"]["caBundle"];
        assert_eq!(*bundle, made["data"]["ca.crt"]);
        assert_eq!(leader.state().problem, None);
        leader.end().await;
    });
}

#[test]
fn hostile_report_of_a_replica_only_counts_as_one_that_answers_nothing() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        assert_eq!(webhooks(&stage).await["webhooks"][0]["failurePolicy"], "Fail");
        let (_, report) = reviewing("b", "x");
        let mut lease = report.lease(HOST, &ReplicaName::of("b"), stage.simulator().now());
        for hostile in [
            "no JSON\u{1b}[2J".to_owned(),
            "[".repeat(100_000),
            format!("{{\"certificate\": \"{}\"}}", "x".repeat(140_000)),
            json!({"certificate": "c", "policies": {"scripts": {"id": ["x"]}}}).to_string(),
            json!({"certificate": "c", "policies": {"scripts": {"problem": "\u{1b}[2J\n".repeat(900)}}})
                .to_string(),
        ] {
            lease["metadata"]["annotations"]["innkeeper.dev/replica"] = hostile.into();
            lease["spec"]["renewTime"] = json!(format!("{:.6}", stage.simulator().now()));
            stage.api().apply(&lease, HOST).await.unwrap();
            stage.pass(5).await;
            assert_eq!(webhooks(&stage).await["webhooks"][0]["failurePolicy"], "Ignore");
            assert_eq!(leader.state().replicas, 2);
            let lack = leader.state().not_reviewing.unwrap_or_default();
            assert!(lack.len() < 600 && !lack.contains(['\u{1b}', '\n']), "{lack}");
        }
        stage.api().delete(&lease_path("b")).await.unwrap();
        stage.pass(5).await;
        assert_eq!(webhooks(&stage).await["webhooks"][0]["failurePolicy"], "Fail");
        leader.end().await;
    });
}
