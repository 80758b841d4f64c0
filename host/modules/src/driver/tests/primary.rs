//! Guests without a primary, which only review requests.

use innkeeper_contract::{KindParameter, KindRole};

use super::overlap::handle_as;
use super::*;
use crate::testing::policy_manifest;

fn immediate() -> Value {
    with(json!({"rollout": {"strategy": "Immediate"}}))
}

/// The same for a guest with a policy.
fn reviewing() -> Value {
    with(json!({"rollout": {"strategy": "Immediate"}, "policy": {}}))
}

/// A policy is loaded.
fn policy(name: &str) -> Input<Fake> {
    loaded(name, |manifest| *manifest = policy_manifest(name))
}

fn activate(driver: &mut Driver<Fake>, name: &str, component: &str, loaded: Input<Fake>) {
    let has_policy = |guest: &Fake| guest.manifest.policy.is_some();
    let spec = match &loaded {
        Input::Loaded { result: Ok(guest), .. } if has_policy(guest) => reviewing(),
        _ => immediate(),
    };
    handle_as(driver, name, named(name, 1, &spec, &json!({})));
    handle_as(driver, name, source(component));
    handle_as(driver, name, loaded);
}

#[test]
fn policy_becomes_active_and_its_status_names_no_primary() {
    let mut driver = driver();
    activate(&mut driver, "m", "a", policy("a"));
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
    let status = driver.report("m").unwrap().members;
    assert_eq!(status["guest"]["name"], "a");
    for member in ["primary", "decorates", "ownedKinds", "finalizer"] {
        assert!(!status.contains_key(member), "{member}: {status:?}");
    }
    assert!(!driver.has_finalizer("m"));
}

#[test]
fn policies_overlap_with_no_module() {
    let mut driver = driver();
    activate(&mut driver, "a", "a", policy("a"));
    activate(&mut driver, "b", "b", policy("b"));
    activate(&mut driver, "c", "c", loaded("c", |_| {}));
    for name in ["a", "b", "c"] {
        assert_eq!(reason_of(&driver, name), "RevisionActive", "{name}");
    }
}

#[test]
fn module_that_loses_its_primary_leaves_the_primaries_to_another_module() {
    let mut driver = driver();
    activate(
        &mut driver,
        "a",
        "a",
        loaded("a", |manifest| manifest.finalizer = Some(String::new())),
    );
    activate(&mut driver, "b", "b", loaded("b", |_| {}));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    handle_as(&mut driver, "a", named("a", 2, &reviewing(), &json!({})));
    handle_as(&mut driver, "a", source("x"));
    handle_as(&mut driver, "a", policy("x"));
    // Until its rollback window is over, it may return to the primaries.
    handle_as(&mut driver, "b", Input::RetryOverlapping);
    handle_as(&mut driver, "b", loaded("b", |_| {}));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    let over = Event::RollbackWindowOver(component("x").digest);
    let actions = handle_as(&mut driver, "a", over.into());
    let retried = |action: &Action<Fake>| show(action) == "retry b";
    assert!(actions.iter().any(retried), "{:?}", actions.iter().map(show).collect::<Vec<_>>());
    let status = driver.report("a").unwrap().members;
    assert!(!status.contains_key("primary") && !status.contains_key("finalizer"), "{status:?}");
    // The objects of the kinds that it owned stay known.
    assert_eq!(status["ownedKinds"][0]["kind"], "ConfigMap");
    handle_as(&mut driver, "b", Input::RetryOverlapping);
    handle_as(&mut driver, "b", loaded("b", |_| {}));
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
}

#[test]
fn policy_that_gains_a_primary_by_a_parameter_becomes_active() {
    let decorator = || {
        let mut manifest = manifest("x");
        manifest.policy = policy_manifest("x").policy;
        manifest.decorates = true;
        manifest.parameters_schema = Some(json!({"properties": {"target": {}}}).into());
        let (parameter, role) = ("target".to_owned(), KindRole::Primary);
        let target = KindParameter { parameter, role, merges: false, optional: false };
        manifest.kind_parameters.push(target);
        manifest
    };
    let mut driver = driver();
    activate(&mut driver, "m", "a", policy("a"));
    handle_as(&mut driver, "m", source("x"));
    let actions = handle_as(&mut driver, "m", loaded("x", |manifest| *manifest = decorator()));
    let job = actions.iter().find_map(check_job).expect("a check of the parameters");
    let resolved = Manifest { kind_parameters: Vec::new(), ..decorator() };
    let result = Ok(Some(resolved.into()));
    let (digest, parameters) = (job.digest, job.parameters.clone());
    handle_as(&mut driver, "m", Input::ParametersChecked { digest, parameters, result });
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
    assert_eq!(driver.report("m").unwrap().members["primary"]["kind"], "Podroute");
}

#[test]
fn deleted_policy_has_nothing_to_tear_down() {
    let mut driver = driver();
    activate(&mut driver, "m", "a", policy("a"));
    let actions = driver.handle("m", Input::Gone);
    assert_eq!(actions.iter().map(show).collect::<Vec<_>>(), ["stop"]);
}
