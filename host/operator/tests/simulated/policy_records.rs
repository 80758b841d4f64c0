//! The record of a decided policy: when the leader writes it, and when it deletes it.

use innkeeper_contract::Kind;
use innkeeper_core::Object;
use innkeeper_lab::Content;
use innkeeper_modules::Digest;
use innkeeper_modules::module::PolicyMode;
use innkeeper_operator::policies::PolicyRecord;
use innkeeper_tiny_guests::{ALLOWED, POLICY_MANIFEST, Tiny};
use serde_json::{Value, json};

use crate::support::policy_leading::WEBHOOKS;
use crate::support::{Reply, Sent, Setup, Stage, block_on, condition, refusal};

const RECORDS: &str = "/api/v1/namespaces/innkeeper-system/configmaps";
const RECORD: &str = "/api/v1/namespaces/innkeeper-system/configmaps/innkeeper-policy-scripts";
const MODULE: &str = "/apis/innkeeper.dev/v1alpha1/modules/scripts";
const ACCOUNT: &str = "/api/v1/namespaces/innkeeper-modules/serviceaccounts/scripts";

/// A module that only reviews, with a record.
async fn reviewing(policy: Value) -> Stage {
    let setup = Setup::of_component(Tiny::policy(ALLOWED).component());
    let stage = setup.spec(json!({ "policy": policy })).start().await;
    assert!(record(&stage).await.is_some(), "no record");
    stage
}

/// The record, as a replica reads it.
async fn record(stage: &Stage) -> Option<PolicyRecord> {
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let object = stage.get(RECORD).await?;
    let object = Object::decode(&kind, &object.to_string(), None).unwrap();
    Some(PolicyRecord::read(&object).unwrap())
}

/// The mode in the record.
async fn mode(stage: &Stage) -> PolicyMode {
    record(stage).await.unwrap().settings.policy.mode
}

async fn set_policy(stage: &Stage, policy: Value) {
    stage.merge_module(&json!({"spec": {"policy": policy}})).await;
}

/// The methods of the requests for the record since the last call, in order.
fn requests(stage: &Stage) -> Vec<String> {
    let is_about =
        |sent: &Sent| sent.path == RECORD || (sent.method == "POST" && sent.path == RECORDS);
    let sent = stage.proxy().take();
    sent.into_iter().filter(is_about).map(|sent| sent.method).collect()
}

/// Refuses the requests of the operator for which `is_refused` holds.
fn refuse(stage: &Stage, is_refused: impl Fn(&Sent) -> bool + Send + 'static) {
    stage.proxy().intercept(move |sent| {
        if is_refused(sent) { refusal(403, "Forbidden", "no such right") } else { Reply::Forward }
    });
}

/// A webhook configuration with the name of that of the module's policy.
async fn create_webhooks(stage: &Stage, labels: Value) {
    let webhooks = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "innkeeper-policy-scripts", "labels": labels}, "webhooks": []});
    let path = WEBHOOKS.rsplit_once('/').unwrap().0;
    stage.api().send("POST", path, Content::Json, &webhooks).await.unwrap();
}

#[test]
fn pure_policy_module_writes_its_record_after_its_status() {
    block_on(async {
        let stage = reviewing(json!({"mode": "Warn"})).await;
        let first = record(&stage).await.unwrap();
        assert_eq!(first.digest, Digest::of(&Tiny::policy(ALLOWED).component()));
        assert_eq!(first.settings.policy.mode, PolicyMode::Warn);
        assert_eq!(first.settings.service_account.as_deref(), Some("scripts"));
        let module = stage.module().await;
        assert_eq!(first.module_uid, module["metadata"]["uid"].as_str().unwrap());
        assert_eq!(module["status"]["policy"], json!({"kind": "Validate", "mode": "Warn"}));

        stage.proxy().take();
        let next = Tiny::policy(r#"{"allowed":false}"#).component();
        stage.push_component(&next).await;
        let digest = Digest::of(&next);
        assert_eq!(record(&stage).await.unwrap().digest, digest);
        let sent = stage.proxy().take();
        let position = |is: &dyn Fn(&Sent) -> bool| sent.iter().position(is).unwrap();
        let decided = position(&|sent| {
            sent.path.ends_with("/modules/scripts/status")
                && sent.body["status"]["digest"] == digest.to_string()
        });
        let recorded = position(&|sent| {
            let text = sent.body["data"]["record"].as_str().unwrap_or_default();
            text.contains(&digest.to_string())
        });
        assert!(decided < recorded, "{decided} {recorded}");
        assert_eq!(sent[recorded].user, "", "the host itself writes it");
    });
}

#[test]
fn record_is_written_once_for_each_change_and_not_for_others() {
    block_on(async {
        let stage = reviewing(json!({"mode": "Audit"})).await;
        stage.proxy().take();
        stage.merge_module(&json!({"metadata": {"annotations": {"a": "b"}}})).await;
        stage.merge_module(&json!({"spec": {"paused": true}})).await;
        stage.settle().await;
        assert_eq!(requests(&stage), [""; 0]);
        set_policy(&stage, json!({"mode": "Enforce"})).await;
        stage.settle().await;
        assert_eq!(mode(&stage).await, PolicyMode::Enforce);
        // The version of a record that was created has to be read once.
        assert_eq!(requests(&stage), ["POST", "GET", "PATCH"]);
        set_policy(&stage, json!({"mode": "Warn"})).await;
        stage.settle().await;
        assert_eq!(requests(&stage), ["PATCH"]);
        // Somebody else writes the record.
        stage.merge_at(RECORD, &json!({"data": {"record": "{}"}})).await;
        set_policy(&stage, json!({"mode": "Audit"})).await;
        stage.settle().await;
        assert_eq!(requests(&stage), ["PATCH", "POST", "GET", "PATCH"]);
        assert_eq!(mode(&stage).await, PolicyMode::Audit);
    });
}

#[test]
fn restarted_leader_leaves_an_equal_record_alone() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        let before = stage.get(RECORD).await.unwrap();
        let stopped = stage.stop().await;
        stopped.proxy().take();
        let stage = stopped.start().await;
        stage.until_decided().await;
        stage.settle().await;
        // The leader reads the settings that were decided before it decides for others.
        assert_eq!(requests(&stage), ["GET", "POST", "GET"]);
        assert_eq!(stage.get(RECORD).await.unwrap(), before);
    });
}

#[test]
fn record_that_cannot_be_written_is_shown_and_written_later() {
    block_on(async {
        let stage = reviewing(json!({"mode": "Audit"})).await;
        refuse(&stage, |sent| sent.path.starts_with(RECORDS));
        set_policy(&stage, json!({"mode": "Warn"})).await;
        for type_ in ["Ready", "Serving"] {
            let message = stage.until_module(type_, "False", "PolicyRecordNotWritten").await;
            assert!(message.contains("no such right"), "{message}");
            assert!(message.contains("the replicas review as before"), "{message}");
        }
        assert_eq!(mode(&stage).await, PolicyMode::Audit);
        stage.proxy().forward();
        stage.until_decided().await;
        assert_eq!(mode(&stage).await, PolicyMode::Warn);
    });
}

#[test]
fn record_that_is_too_large_is_shown() {
    block_on(async {
        let schema = r#""parametersSchema":{"type":"object"},"policy""#;
        let manifest = POLICY_MANIFEST.replacen("\"policy\"", schema, 1);
        let guest = Tiny::policy(ALLOWED).manifest(&manifest);
        let stage = reviewing(json!({})).await;
        stage.push_component(&guest.component()).await;
        let parameters = json!({"long": "x".repeat(513 << 10)});
        stage.merge_module(&json!({"spec": {"parameters": parameters}})).await;
        let message = stage.until_module("Ready", "False", "PolicyRecordNotWritten").await;
        assert!(message.contains("make spec.parameters"), "{message}");
        assert_eq!(record(&stage).await.unwrap().settings.parameters, Value::Null);
    });
}

#[test]
fn stopped_module_loses_webhook_before_record() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        create_webhooks(&stage, json!({"innkeeper.dev/policy": "scripts"})).await;
        stage.proxy().take();
        stage.delete_module().await;
        stage.until_gone(RECORD).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
        let sent = stage.proxy().take();
        let of_policy = |sent: &&Sent| sent.method == "DELETE" && sent.path.contains("-policy-");
        let deleted: Vec<&str> = sent.iter().filter(of_policy).map(|sent| &*sent.path).collect();
        assert_eq!(deleted, [WEBHOOKS, RECORD]);
    });
}

#[test]
fn record_stays_until_its_webhook_can_be_deleted() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        create_webhooks(&stage, json!({"innkeeper.dev/policy": "scripts"})).await;
        refuse(&stage, |sent| sent.path == WEBHOOKS && sent.method == "DELETE");
        stage.delete_module().await;
        stage.until_module_gone().await;
        stage.pass(60).await;
        assert!(record(&stage).await.is_some(), "a request would find no policy");
        stage.proxy().forward();
        stage.until_gone(RECORD).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
    });
}

#[test]
fn record_that_has_lost_its_label_is_deleted_with_its_module() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        stage.merge_at(RECORD, &json!({"metadata": {"labels": null}})).await;
        stage.delete_module().await;
        stage.until_module_gone().await;
        stage.until_gone(RECORD).await;
    });
}

#[test]
fn policy_without_consent_loses_its_record_and_no_foreign_webhook() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        create_webhooks(&stage, json!({"app": "something-else"})).await;
        set_policy(&stage, Value::Null).await;
        stage.until_gone(RECORD).await;
        stage.until_module("Ready", "False", "PolicyNotGranted").await;
        assert!(stage.get(WEBHOOKS).await.is_some());
        assert_eq!(stage.module().await["status"]["policy"], Value::Null);
        set_policy(&stage, json!({"mode": "Audit"})).await;
        stage.until_decided().await;
        stage.settle().await;
        assert_eq!(mode(&stage).await, PolicyMode::Audit);
    });
}

#[test]
fn consent_that_is_withdrawn_without_a_leader_counts_when_one_starts() {
    block_on(async {
        let stopped = reviewing(json!({})).await.stop().await;
        stopped.merge_at(MODULE, &json!({"spec": {"policy": null}})).await;
        let stage = stopped.start().await;
        stage.until_gone(RECORD).await;
    });
}

#[test]
fn withdrawn_account_does_not_end_the_policy() {
    block_on(async {
        let stage = reviewing(json!({})).await;
        let allowed = |modules: Value| json!({"metadata": {"annotations": {"innkeeper.dev/allowed-modules": modules}}});
        stage.merge_at(ACCOUNT, &allowed(Value::Null)).await;
        stage.until_module("Authorized", "False", "AccountNotAllowed").await;
        stage.settle().await;
        assert!(record(&stage).await.is_some());
        let module = stage.module().await;
        let serving = condition(&module, "Serving").unwrap();
        assert_eq!(serving["reason"], "PolicyNotActive", "it is not stopped");
        stage.proxy().take();
        stage.merge_at(ACCOUNT, &allowed(json!("scripts"))).await;
        stage.settle().await;
        assert_eq!(requests(&stage), [""; 0], "the record is as it was");
    });
}
