//! The grant of the spec to the active revision: a finalizer of a group in `spec.allowedCRDGroups`.

use super::*;

fn granting(groups: &Value) -> Value {
    with(json!({"rollout": {"strategy": "Immediate"}, "allowedCRDGroups": groups}))
}

fn of_example_com(manifest: &mut Manifest) {
    manifest.finalizer = Some("example.com/a".to_owned());
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

#[test]
fn finalizer_of_the_active_revision_is_reported_when_its_group_is_removed() {
    let mut driver = driver();
    driver.handle("m", module(1, &granting(&json!(["example.com"]))));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", of_example_com));
    assert_eq!(ready(&driver), is("True", "RevisionActive"));

    let actions = driver.handle("m", module(2, &granting(&json!([]))));
    let shown: Vec<_> = actions.iter().map(show).collect();
    assert!(shown.contains(&"notify FinalizerNotGranted".to_owned()), "{shown:?}");
    assert_eq!(ready(&driver), is("False", "FinalizerNotGranted"));
    assert!(driver.active_revision("m").is_some(), "it stays active");
    let again = driver.handle("m", module(3, &granting(&json!([]))));
    let shown: Vec<_> = again.iter().map(show).collect();
    assert!(!shown.contains(&"notify FinalizerNotGranted".to_owned()), "once: {shown:?}");

    driver.handle("m", module(4, &granting(&json!(["example.com"]))));
    assert_eq!(ready(&driver), is("True", "RevisionActive"));
}

#[test]
fn restored_revision_is_active_although_its_finalizer_is_no_longer_granted() {
    let mut driver = driver();
    let status = json!({"digest": component("a").digest.to_string(), "conditions": []});
    driver.handle("m", named("m", 2, &granting(&json!([])), &status));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", of_example_com));
    assert!(driver.active_revision("m").is_some());
    assert_eq!(ready(&driver), is("False", "FinalizerNotGranted"));
}

#[test]
fn candidate_whose_finalizer_is_not_granted_is_refused() {
    let mut driver = driver();
    driver.handle("m", module(1, &granting(&json!([]))));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", of_example_com));
    assert!(driver.active_revision("m").is_none());
    assert_eq!(ready(&driver), is("False", "FinalizerNotGranted"));
}
