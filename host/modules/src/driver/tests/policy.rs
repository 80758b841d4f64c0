//! The policy of a guest, and `spec.policy` as the consent to it.

use super::*;

fn reviewing(manifest: &mut Manifest) {
    manifest.policy = serde_json::from_value(json!({"kind": "Validate", "rules": [
        {"groups": [""], "resources": ["pods"], "operations": ["CREATE"]}]}))
    .unwrap();
}

fn spec_with(policy: &Value) -> Value {
    with(json!({"rollout": {"strategy": "Immediate"}, "policy": policy}))
}

/// Status and reason of the condition `Ready`.
fn ready(driver: &Driver<Fake>) -> (String, String) {
    let conditions = driver.report("m").unwrap().conditions;
    let ready = conditions.into_iter().find(|one| one.type_ == "Ready").unwrap();
    (format!("{:?}", ready.status), ready.reason)
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// A driver with an active revision `a` that reviews in this way.
fn reviewing_driver(policy: &Value) -> Driver<Fake> {
    let mut driver = driver();
    driver.handle("m", module(1, &spec_with(policy)));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", reviewing));
    assert_eq!(ready(&driver), is("True", "RevisionActive"));
    driver
}

#[test]
fn component_that_gains_a_policy_is_blocked_without_spec_policy() {
    let mut driver = driver();
    check(
        &mut driver,
        [
            ("spec 1", module(1, &spec_with(&Value::Null))),
            ("source a", source("a")),
            ("loaded a without a policy", loaded("a", |_| {})),
            ("source b", source("b")),
            ("loaded b with a policy", loaded("b", reviewing)),
            ("spec 2 with a policy", module(2, &spec_with(&json!({})))),
            ("loaded b with a policy", loaded("b", reviewing)),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a without a policy
                commit
                report 1 Committing
                activate a #1 parameters=null memory=67108864
                notify RevisionActive
                report 1 RevisionActive
            source b
                load b within 67108864 bytes
                report 1 Loading
            loaded b with a policy
                notify PolicyNotGranted
                report 1 PolicyNotGranted
            spec 2 with a policy
                activate a #2 parameters=null memory=67108864
                load b within 67108864 bytes
                report 2 Loading
            loaded b with a policy
                commit
                report 2 Committing
                activate b #3 parameters=null memory=67108864
                notify RevisionActive
                begin rollback window of 120s, 0 may fail
                report 2 RevisionActive
        "#]],
    );
}

#[test]
fn settings_of_a_policy_apply_without_a_load() {
    let mut driver = reviewing_driver(&json!({"mode": "Audit"}));
    check(
        &mut driver,
        [("spec 2", module(2, &spec_with(&json!({"mode": "Enforce"}))))],
        &expect![[r#"
            spec 2
                activate a #2 parameters=null memory=67108864
                report 2 RevisionActive
        "#]],
    );
    let revision = driver.active_revision("m").unwrap();
    let (guest, settings) = revision.policy().unwrap();
    assert_eq!((guest.rules.len(), settings.mode), (1, module::PolicyMode::Enforce));
    assert_eq!(
        driver.report("m").unwrap().members["policy"],
        json!({"kind": "Validate", "mode": "Enforce"})
    );
}

#[test]
fn policy_whose_consent_is_withdrawn_is_no_policy_of_the_active_revision() {
    let mut driver = reviewing_driver(&json!({}));
    let actions = driver.handle("m", module(2, &spec_with(&Value::Null)));
    let shown: Vec<_> = actions.iter().map(show).collect();
    assert!(shown.contains(&"notify PolicyNotGranted".to_owned()), "{shown:?}");
    assert_eq!(ready(&driver), is("False", "PolicyNotGranted"));
    let revision = driver.active_revision("m").unwrap();
    assert!(revision.policy().is_none() && revision.check_policy().is_err());
    assert!(!driver.report("m").unwrap().members.contains_key("policy"));
}

#[test]
fn guest_without_a_policy_is_refused_where_the_module_has_one() {
    let mut driver = reviewing_driver(&json!({}));
    driver.handle("m", source("b"));
    handle(&mut driver, loaded("b", |_| {}));
    assert_eq!(ready(&driver), is("False", "PolicyMissing"));
    assert_eq!(driver.active_revision("m").unwrap().guest.manifest.name, "a");
}

#[test]
fn restored_revision_is_active_although_its_policy_is_no_longer_granted() {
    let mut driver = driver();
    let status = json!({"digest": component("a").digest.to_string(), "conditions": [],
        "policy": {"kind": "Validate", "mode": "Enforce", "replicas": "2/2"}});
    driver.handle("m", named("m", 2, &spec_with(&Value::Null), &status));
    assert_eq!(driver.report("m").unwrap().members["policy"]["replicas"], "2/2");
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", reviewing));
    assert!(driver.active_revision("m").is_some_and(|revision| revision.policy().is_none()));
    assert_eq!(ready(&driver), is("False", "PolicyNotGranted"));
}

#[test]
fn namespaced_host_refuses_a_policy() {
    let mut driver = driver().limited_to(["shop".to_owned()].into());
    driver.handle("m", module(1, &spec_with(&json!({}))));
    assert_eq!(ready(&driver), is("False", "PoliciesNeedClusterScope"));
    driver.handle("m", module(2, &spec_with(&Value::Null)));
    assert_eq!(ready(&driver), is("False", "Waiting"));
}
