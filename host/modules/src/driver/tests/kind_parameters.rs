//! Kinds from the Module's parameters: at load, at a change of parameters, and after a restart.

use std::sync::Arc;

use innkeeper_contract::{KindParameter, KindRole};
use serde_json::json;

use super::*;
use crate::kind_parameters::requested;
use crate::resolved_manifest::resolve;

fn name(kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind})
}

fn with_parameters(generation: i64, parameters: &Value) -> Input<Fake> {
    module(
        generation,
        &with(json!({"parameters": parameters, "rollout": {"strategy": "Immediate"}})),
    )
}

/// A decorator of Pods by default; `target` and `copies` name kinds.
fn described(manifest: &mut Manifest) {
    let parameter = |parameter: &str, role| KindParameter {
        parameter: parameter.to_owned(),
        role,
        merges: false,
        optional: false,
    };
    manifest.primary = Kind::namespaced("v1", "Pod", "pods");
    manifest.decorates = true;
    manifest.parameters_schema = Some(json!({"properties": {"target": {}, "copies": {}}}));
    manifest.kind_parameters =
        vec![parameter("target", KindRole::Primary), parameter("copies", KindRole::Owned)];
}

fn check_of(actions: &[Action<Fake>]) -> ParametersJob<Fake> {
    actions.iter().find_map(check_job).expect("a check")
}

/// The answer of a check for which the API server serves all kinds.
fn found(job: &ParametersJob<Fake>) -> Input<Fake> {
    let mut guest = manifest("a");
    described(&mut guest);
    let kinds = requested(&guest, &job.parameters).unwrap().into_iter().map(|one| {
        let plural = format!("{}s", one.name.kind.to_lowercase());
        let kind = Kind::namespaced(&*one.name.api_version, &*one.name.kind, plural);
        (one, kind)
    });
    let resolved = resolve(&guest, kinds.collect()).unwrap();
    answer(job, Ok(Some(Arc::new(resolved))))
}

fn answer(
    job: &ParametersJob<Fake>,
    result: Result<Option<Arc<Manifest>>, Rejection>,
) -> Input<Fake> {
    let (digest, parameters) = (job.digest, job.parameters.clone());
    Input::ParametersChecked { digest, parameters, result }
}

/// Hands an input in, answers its check of parameters, and writes the decision.
fn handle_found(driver: &mut Driver<Fake>, input: Input<Fake>) -> Vec<Action<Fake>> {
    let job = check_of(&driver.handle("m", input));
    handle(driver, found(&job))
}

/// The primary kind and the owned kinds of the active revision, and the kinds of earlier ones.
fn kinds(driver: &Driver<Fake>) -> (String, Vec<String>, Vec<String>) {
    let active = driver.active_revision("m").unwrap();
    let manifest = active.guest.manifest();
    (
        manifest.primary.kind.clone(),
        manifest.owned.iter().map(|owned| owned.kind.kind.clone()).collect(),
        active.dropped.iter().map(|kind| kind.kind.clone()).collect(),
    )
}

fn ready(driver: &Driver<Fake>) -> (String, String) {
    let conditions = driver.report("m").unwrap().conditions;
    let ready = conditions.into_iter().find(|one| one.type_ == "Ready").unwrap();
    (ready.reason, ready.message)
}

fn active(parameters: &Value) -> Driver<Fake> {
    let mut driver = driver();
    driver.handle("m", with_parameters(1, parameters));
    driver.handle("m", source("a"));
    handle_found(&mut driver, loaded("a", described));
    driver
}

#[test]
fn guest_is_activated_with_the_kinds_of_its_parameters() {
    let driver = active(&json!({"target": name("Service"), "copies": [name("Secret")]}));
    let (primary, owned, _) = kinds(&driver);
    assert_eq!((&*primary, owned), ("Service", vec!["ConfigMap".into(), "Secret".into()]));
    let status = driver.report("m").unwrap().members;
    assert_eq!(status["primary"]["kind"], "Service");
    assert_eq!(status["ownedKinds"].as_array().unwrap().len(), 2);
}

#[test]
fn guest_is_activated_with_the_default_primary_when_the_parameter_is_left_out() {
    assert_eq!(kinds(&active(&json!({}))).0, "Pod");
}

#[test]
fn candidate_whose_kind_is_not_served_is_refused_and_tried_again() {
    let mut driver = driver();
    driver.handle("m", with_parameters(1, &json!({"target": name("Service")})));
    driver.handle("m", source("a"));
    let job = check_of(&driver.handle("m", loaded("a", described)));
    assert_eq!(job.known_kinds, []);
    let rejection = Rejection::new("KindNotServed", "not served", RetryPolicy::Later);
    let actions = handle(&mut driver, answer(&job, Err(rejection)));
    assert!(actions.iter().any(|action| matches!(action, Action::RetryLater)));
    assert_eq!(ready(&driver).0, "KindNotServed");
    driver.handle("m", Event::Retry);
    handle_found(&mut driver, loaded("a", described));
    assert_eq!(kinds(&driver).0, "Service");
}

#[test]
fn guest_whose_kinds_were_not_found_is_never_activated() {
    let mut driver = driver();
    driver.handle("m", with_parameters(1, &json!({})));
    driver.handle("m", source("a"));
    let job = check_of(&driver.handle("m", loaded("a", described)));
    handle(&mut driver, answer(&job, Ok(None)));
    assert!(driver.active_revision("m").is_none());
    assert_eq!(ready(&driver).0, "ParametersNotChecked");
}

#[test]
fn parameters_that_name_another_primary_are_refused_and_the_active_revision_stays() {
    let mut driver = active(&json!({"target": name("Service")}));
    let actions = handle_found(&mut driver, with_parameters(2, &json!({"target": name("Node")})));
    assert!(!actions.iter().any(|action| matches!(action, Action::Serve(_))));
    assert_eq!(kinds(&driver).0, "Service");
    let (reason, message) = ready(&driver);
    assert_eq!(reason, "PrimaryKindChanged");
    assert!(message.contains("make another Module for v1 Node"), "{message}");
    // So is a new version whose parameters do.
    driver.handle("m", source("b"));
    handle_found(&mut driver, loaded("b", described));
    assert_eq!(kinds(&driver).0, "Service");
    driver.handle("m", with_parameters(3, &json!({"target": name("Service")})));
    assert_ne!(ready(&driver).0, "PrimaryKindChanged");
}

#[test]
fn owned_kinds_follow_the_parameters_and_earlier_ones_are_pruned() {
    let mut driver = active(&json!({"copies": [name("Secret")]}));
    let actions =
        handle_found(&mut driver, with_parameters(2, &json!({"copies": name("Service")})));
    assert!(actions.iter().any(|action| matches!(action, Action::Serve(_))));
    let (_, owned, dropped) = kinds(&driver);
    assert_eq!(owned, ["ConfigMap", "Service"]);
    assert_eq!(dropped, ["Secret"]);
    let gone = vec![Kind::namespaced("v1", "Secret", "secrets")];
    driver.handle("m", Input::LeftoversGone(gone));
    let (_, owned, dropped) = kinds(&driver);
    assert_eq!((owned, dropped), (vec!["ConfigMap".into(), "Service".into()], vec![]));
    // Other settings keep the kinds.
    handle(
        &mut driver,
        module(
            3,
            &with(
                json!({"parameters": {"copies": name("Service")}, "limits": {"memory": 1 << 20}}),
            ),
        ),
    );
    assert_eq!(kinds(&driver).1, ["ConfigMap", "Service"]);
}

#[test]
fn restored_revision_may_use_the_kinds_of_the_status_while_they_are_not_served() {
    let status = active(&json!({"target": name("Service"), "copies": [name("Secret")]}));
    let status = Value::Object(status.report("m").unwrap().members);
    let mut driver = driver();
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 1},
        "spec": with(json!({"parameters": {"target": name("Node")}})),
        "status": status,
    });
    driver.handle("m", Input::Module(Box::new(Module::from_value(&document).unwrap())));
    driver.handle("m", source("a"));
    let job = check_of(&driver.handle("m", loaded("a", described)));
    let known: Vec<_> = job.known_kinds.iter().map(|kind| kind.kind.clone()).collect();
    assert_eq!(known, ["Service", "ConfigMap", "Secret"]);
    // The parameters changed while no host ran.
    handle(&mut driver, found(&job));
    assert_eq!(ready(&driver).0, "PrimaryKindChanged");
    assert!(driver.active_revision("m").is_none());
}
