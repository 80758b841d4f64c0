//! The documents of a policy: what is read, what is refused, and how they are written.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_contract::{Manifest, Operation, PolicyKind, ReviewRequest, RuleScope, Verdict};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(document: Value) -> Result<T, String> {
    serde_json::from_value(document).map_err(|error| error.to_string())
}

/// Returns why the document is refused.
fn refusal<T: DeserializeOwned + std::fmt::Debug>(document: Value) -> String {
    read::<T>(document).unwrap_err()
}

fn policy_manifest() -> Value {
    json!({
        "name": "labels",
        "policy": {
            "kind": "Validate",
            "rules": [{ "groups": ["apps"], "resources": ["deployments"], "operations": ["CREATE"] }],
        },
    })
}

fn review_request() -> Value {
    json!({
        "operation": "CREATE",
        "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" },
        "name": "web",
        "namespace": "shop",
        "user": { "username": "ann", "uid": "", "groups": ["developers"], "extra": {} },
        "object": { "apiVersion": "v1", "kind": "Pod" },
        "oldObject": null,
        "dryRun": false,
        "background": false,
    })
}

#[test]
fn manifest_without_primary_and_with_policy_is_read() {
    let manifest: Manifest = read(policy_manifest()).unwrap();

    assert!(manifest.is_policy_only());
    assert_eq!(manifest.primary, None);
    let policy = manifest.policy.as_ref().unwrap();
    assert_eq!(policy.kind, PolicyKind::Validate);
    assert_eq!(policy.rules[0].operations, [Operation::Create]);
    assert_eq!(policy.rules[0].scope, RuleScope::All);
    let written = serde_json::to_value(&manifest).unwrap();
    assert_eq!(written.get("primary"), None);
    assert_eq!(read::<Manifest>(written).unwrap(), manifest);
}

#[test]
fn manifest_with_primary_and_policy_is_not_of_a_policy_only() {
    let mut document = policy_manifest();
    document["primary"] = json!({ "apiVersion": "v1", "kind": "Pod", "plural": "pods" });

    let manifest: Manifest = read(document).unwrap();

    assert!(!manifest.is_policy_only());
    assert_eq!(manifest.primary.unwrap().plural, "pods");
}

#[test]
fn manifest_without_primary_and_policy_is_not_of_a_policy_only() {
    let manifest: Manifest = read(json!({ "name": "labels" })).unwrap();

    assert!(!manifest.is_policy_only());
}

#[test]
fn policy_with_an_unknown_member_is_refused() {
    for place in ["/policy", "/policy/rules/0"] {
        let mut document = policy_manifest();
        document.pointer_mut(place).unwrap()["ruels"] = json!([]);

        let refusal = refusal::<Manifest>(document);

        assert!(refusal.contains("unknown field `ruels`"), "{place}: {refusal}");
    }
}

#[test]
fn policy_with_side_effects_is_refused() {
    let mut document = policy_manifest();
    document["policy"]["sideEffects"] = json!("Some");

    let refusal = refusal::<Manifest>(document);

    assert!(refusal.contains("unknown variant `Some`, expected `None`"), "{refusal}");
}

#[test]
fn operations_are_written_as_kubernetes_writes_them() {
    for operation in [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect] {
        assert_eq!(serde_json::to_value(operation).unwrap(), operation.as_str());
    }
}

#[test]
fn verdict_without_allowed_is_refused() {
    let refusal = refusal::<Verdict>(json!({}));

    assert!(refusal.contains("missing field `allowed`"), "{refusal}");
}

#[test]
fn verdict_with_an_unknown_member_is_refused() {
    let refusal = refusal::<Verdict>(json!({ "allowed": true, "warning": "it is old" }));

    assert!(refusal.contains("unknown field `warning`"), "{refusal}");
}

#[test]
fn denial_with_a_code_that_is_no_status_is_read() {
    for code in [-1, 0, 70_000, i64::MAX] {
        let verdict: Verdict = read(json!({ "allowed": false, "code": code })).unwrap();

        assert_eq!((verdict.allowed, verdict.code), (false, Some(code)));
    }
}

#[test]
fn verdict_that_decides_twice_is_refused() {
    let refusal = serde_json::from_str::<Verdict>(r#"{"allowed":false,"allowed":true}"#)
        .unwrap_err()
        .to_string();

    assert!(refusal.contains("duplicate field `allowed`"), "{refusal}");
}

#[test]
fn cause_with_an_unknown_member_is_refused() {
    let causes = json!([{ "message": "no digest", "path": "spec.image" }]);

    let refusal = refusal::<Verdict>(json!({ "allowed": false, "causes": causes }));

    assert!(refusal.contains("unknown field `path`"), "{refusal}");
}

#[test]
fn verdict_that_only_allows_is_written_as_one_member() {
    let verdict = Verdict { allowed: true, ..Verdict::default() };

    assert_eq!(serde_json::to_value(verdict).unwrap(), json!({ "allowed": true }));
    assert!(!Verdict::default().allowed);
}

#[test]
fn review_request_is_written_as_it_was_read() {
    let request: ReviewRequest = read(review_request()).unwrap();

    assert_eq!(request.old_object, None);
    assert_eq!(serde_json::to_value(request).unwrap(), review_request());
}

#[test]
fn review_request_of_a_later_host_is_read() {
    let mut document = review_request();
    document["priority"] = json!(7);
    document["user"]["tenant"] = json!("shop");

    let request: ReviewRequest = read(document).unwrap();

    assert_eq!(request.user.username, "ann");
}
