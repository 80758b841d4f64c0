//! Kubewarden policies: which core modules the host accepts, what they are given, and what their
//! answers mean. Hostile ones are in `kubewarden/hostile.rs`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod guests;
#[path = "kubewarden/host_calls.rs"]
mod host_calls;
#[path = "kubewarden/hostile.rs"]
mod hostile;
#[path = "kubewarden/metadata.rs"]
mod metadata;
#[path = "kubewarden/wasi.rs"]
mod wasi;

use expect_test::{Expect, expect};
use guests::kubewarden::{Kubewarden, REQUEST_AT};
use guests::{Cluster, engine};
use innkeeper_contract::{Operation, PolicyKind, Verdict};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFigures, CacheFolder, CacheKey, CallError, CodeCache, Engine, Guest,
    Interruption, Limits, LoadError, ReviewOutcome, SettingsError,
};
use serde_json::{Value, json};

const REQUEST: &str = r#"{"operation":"CREATE","kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"}}"#;

trait Load {
    fn load(&self) -> Result<Guest, LoadError>;
    fn review(&self, cluster: &mut Cluster) -> Result<ReviewOutcome, CallError>;
    fn verdict(&self) -> Verdict;
    fn failure(&self) -> String;
}

impl Load for Kubewarden {
    fn load(&self) -> Result<Guest, LoadError> {
        engine(Interruption::Epoch).load(&self.module(), &Limits::default())
    }

    fn review(&self, cluster: &mut Cluster) -> Result<ReviewOutcome, CallError> {
        self.load().unwrap().review(REQUEST, cluster).map(|review| review.outcome)
    }

    #[track_caller]
    fn verdict(&self) -> Verdict {
        let outcome = self.review(&mut Cluster::default()).unwrap();
        let ReviewOutcome::Decided(verdict) = outcome else { unreachable!("{outcome:?}") };
        verdict
    }

    #[track_caller]
    fn failure(&self) -> String {
        let outcome = self.review(&mut Cluster::default()).unwrap();
        let ReviewOutcome::Failed(why) = outcome else { unreachable!("{outcome:?}") };
        why
    }
}

#[track_caller]
fn refused(policy: &Kubewarden, reason: &str, expected: &Expect) {
    let error = policy.load().unwrap_err();
    expected.assert_eq(&error.to_string());
    assert_eq!(error.reason(), reason);
    assert!(!error.is_temporary());
}

#[test]
fn core_module_with_metadata_is_a_policy() {
    let guest = Kubewarden::default().load().unwrap();
    assert!(guest.has_policy() && !guest.has_reconciler());
    let manifest = guest.manifest();
    assert_eq!((&*manifest.name, &*manifest.version), ("tiny-policy", "1.2.3"));
    let policy = manifest.policy.as_ref().unwrap();
    assert_eq!(policy.kind, PolicyKind::Validate);
    assert_eq!(policy.rules[0].operations, [Operation::Create, Operation::Update]);
    assert_eq!(manifest.reads[0].plural, "configmaps");
    assert_eq!(guest.kubewarden().unwrap().annotation("title"), Some("Tiny policy"));
    assert_eq!(guest.imports().len(), 9);
    assert!(Kubewarden::default().verdict().allowed);
    let error = guest.reconcile("{}", &mut Cluster::default()).unwrap_err();
    assert_eq!(error.reason(), "NotExported");
}

#[test]
fn policy_gets_its_settings_and_the_request_of_kubernetes() {
    // Answers with its own input, as annotations.
    let request = json!({
        "operation": "UPDATE",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subresource": "scale",
        "requestKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "name": "web", "namespace": "shop",
        "user": {"username": "ann", "groups": ["dev"], "extra": {"a": ["b"]}},
        "object": {"spec": {"replicas": 2}}, "oldObject": {"spec": {"replicas": 1}},
        "options": {"kind": "UpdateOptions"}, "dryRun": true, "parameters": {"max": 3},
    });
    let payload = given(&request.to_string());
    let uid = payload["request"]["uid"].as_str().unwrap();
    assert_eq!(uid.len(), 36, "{uid}");
    let expected = json!({
        "settings": {"max": 3},
        "request": {
            "uid": uid,
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "subResource": "scale",
            "requestKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "requestResource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestSubResource": "scale",
            "name": "web", "namespace": "shop", "operation": "UPDATE",
            "userInfo": {"username": "ann", "uid": "", "groups": ["dev"], "extra": {"a": ["b"]}},
            "object": {"spec": {"replicas": 2}}, "oldObject": {"spec": {"replicas": 1}},
            "dryRun": true, "options": {"kind": "UpdateOptions"},
        },
    });
    assert_eq!(payload, expected);
    // Without parameters the settings are an object; the same request has the same identifier.
    let payload = given(REQUEST);
    assert_eq!(payload["settings"], json!({}));
    assert_eq!(payload["request"]["uid"], given(REQUEST)["request"]["uid"]);
    assert_eq!(payload["request"].get("options"), None);
}

/// What a policy is given for a `review-request` document: it ends with its own input as error.
fn given(document: &str) -> Value {
    let guest = Kubewarden::default()
        .validate(&format!(
            "(call $guest_error (i32.const {REQUEST_AT}) (local.get $length)) (i32.const 0)"
        ))
        .load()
        .unwrap();
    let outcome = guest.review(document, &mut Cluster::default()).unwrap().outcome;
    let ReviewOutcome::Failed(payload) = outcome else { unreachable!("{outcome:?}") };
    serde_json::from_str(&payload).unwrap()
}

#[test]
fn answer_of_a_policy_becomes_a_verdict() {
    let verdict = Kubewarden::default()
        .validate_with(
            r#"{"accepted":false,"message":"no","code":418,"warnings":["old"],
                "audit_annotations":{"a":"b"},"mutated_object":null,"unknown":1}"#,
        )
        .verdict();
    let expected = Verdict {
        message: "no".to_owned(),
        code: Some(418),
        warnings: vec!["old".to_owned()],
        audit_annotations: [("a".to_owned(), "b".to_owned())].into(),
        ..Verdict::default()
    };
    assert_eq!(verdict, expected);
    let changing = r#"{"accepted":true,"mutated_object":{"kind":"ConfigMap"}}"#;
    let verdict = Kubewarden::default().validate_with(changing).verdict();
    assert_eq!(verdict.object, Some(json!({"kind": "ConfigMap"})));
}

#[test]
fn error_of_a_policy_is_no_verdict() {
    assert_eq!(Kubewarden::default().failing("no registry").failure(), "no registry");
    let silent = Kubewarden::default().validate("(i32.const 0)");
    assert_eq!(silent.failure(), "validate failed without a reason");
}

#[test]
fn settings_that_the_policy_refuses_are_an_error_with_its_reason() {
    let check = |policy: Kubewarden| policy.load().unwrap().check_settings(&Value::Null);
    let answering = |response: &str| Kubewarden::default().validate_settings_with(response);
    assert_eq!(check(Kubewarden::default()), Ok(()));
    assert_eq!(
        check(answering(r#"{"valid":false,"message":"max is missing"}"#)),
        Err(SettingsError::Refused("max is missing".to_owned()))
    );
    assert_eq!(
        check(answering(r#"{"valid":false,"message":null}"#)),
        Err(SettingsError::Refused(String::new()))
    );
    for broken in ["", "{}", "yes"] {
        let Err(SettingsError::Failed(error)) = check(answering(broken)) else { panic!() };
        assert_eq!(error.reason(), "OutputUnreadable", "{broken}");
    }
    let trapping = Kubewarden::default().validate_settings("unreachable");
    let Err(SettingsError::Failed(error)) = check(trapping) else { panic!() };
    assert_eq!(error.reason(), "GuestTrapped");
}

#[test]
fn policy_gets_the_settings_alone_to_validate_them() {
    let guest = Kubewarden::default()
        .validate_settings(&format!(
            "(call $guest_error (i32.const {REQUEST_AT}) (local.get $length)) (i32.const 0)"
        ))
        .load()
        .unwrap();
    for (parameters, given) in [(Value::Null, "{}"), (json!({"max": 1}), r#"{"max":1}"#)] {
        let error = guest.check_settings(&parameters).unwrap_err();
        assert_eq!(error, SettingsError::Refused(given.to_owned()));
    }
}

#[test]
fn policy_of_another_protocol_is_refused() {
    refused(
        &Kubewarden::default().protocol_version_with(r#""v2""#),
        "WrongContract",
        &expect![[r#"the Kubewarden policy speaks the protocol "v2", this host speaks "v1""#]],
    );
    refused(
        &Kubewarden::default().protocol_version("(i32.const 0)"),
        "WrongContract",
        &expect![[
            r#"the Kubewarden policy speaks the protocol "protocol_version failed without a reason", this host speaks "v1""#
        ]],
    );
    let error = Kubewarden::default().protocol_version("unreachable").load().unwrap_err();
    assert_eq!(error.reason(), "DescribeFailed");
}

#[test]
fn no_state_reaches_the_next_review_of_a_module() {
    let guest = Kubewarden::default()
        .with("(global $used (mut i32) (i32.const 0))")
        .before_accepting(
            "(if (global.get $used) (then unreachable)) (global.set $used (i32.const 1))",
        )
        .load()
        .unwrap();
    for _ in 0..5 {
        guest.review(REQUEST, &mut Cluster::default()).unwrap();
    }
}

#[test]
fn functions_that_start_an_instance_are_called_before_the_operation() {
    let policy = Kubewarden::default()
        .with(
            "(global $started (mut i32) (i32.const 0))
             (func (export \"_start\") (global.set $started (i32.const 1)))
             (func (export \"wapc_init\") (if (i32.eqz (global.get $started)) (then unreachable))
                 (global.set $started (i32.const 2)))",
        )
        .before_accepting("(if (i32.ne (global.get $started) (i32.const 2)) (then unreachable))");
    assert!(policy.verdict().allowed);
}

#[test]
fn code_of_a_module_is_cached_and_shared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(folder.path()).unwrap();
    let cache = CodeCache::open(folder, &CacheKey::Given([1; 32]), CACHE_BYTES_DEFAULT).unwrap();
    let engine =
        Engine::builder().guests(2).permits(2).review_permits(2).cache(cache.clone()).build();
    let engine = engine.unwrap();
    let bytes = Kubewarden::default().module();
    let compiled = CacheFigures { misses: 1, stored: 1, ..CacheFigures::default() };
    let first = engine.load(&bytes, &Limits::default()).unwrap();
    let second = engine.load(&bytes, &Limits::default()).unwrap();
    assert_eq!(cache.figures(), compiled);
    drop((first, second));
    let third = engine.load(&bytes, &Limits::default()).unwrap();
    assert_eq!(cache.figures(), CacheFigures { hits: 1, ..compiled });
    third.review(REQUEST, &mut Cluster::default()).unwrap();
}

#[test]
fn policy_runs_the_same_by_fuel() {
    let engine = engine(Interruption::Fuel);
    let guest = engine.load(&Kubewarden::default().module(), &Limits::default()).unwrap();
    let fuel = || guest.review(REQUEST, &mut Cluster::default()).unwrap().figures.fuel;
    assert!(fuel().is_some_and(|fuel| fuel > 0));
    assert_eq!(fuel(), fuel());
}
