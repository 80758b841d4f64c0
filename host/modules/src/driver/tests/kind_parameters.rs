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
    manifest.primary = Some(Kind::namespaced("v1", "Pod", "pods"));
    manifest.decorates = true;
    manifest.parameters_schema = Some(json!({"properties": {"target": {}, "copies": {}}}).into());
    manifest.kind_parameters =
        vec![parameter("target", KindRole::Primary), parameter("copies", KindRole::Owned)];
}

fn check_of(actions: &[Action<Fake>]) -> ParametersJob<Fake> {
    actions.iter().find_map(check_job).expect("a check")
}

/// The answer of a check for which the API server serves all kinds, with a namespace.
fn found(job: &ParametersJob<Fake>) -> Input<Fake> {
    found_with(job, Kind::namespaced)
}

/// The answer of a check for which the API server serves all kinds like this.
fn found_with(
    job: &ParametersJob<Fake>,
    serve: impl Fn(String, String, String) -> Kind,
) -> Input<Fake> {
    let mut guest = manifest("a");
    described(&mut guest);
    let kinds = requested(&guest, &job.parameters).unwrap().into_iter().map(|one| {
        let plural = format!("{}s", one.name.kind.to_lowercase());
        let kind = serve(one.name.api_version.clone(), one.name.kind.clone(), plural);
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
        manifest.primary.as_ref().unwrap().kind.clone(),
        manifest.owned.iter().map(|owned| owned.kind.kind.clone()).collect(),
        active.retired_kinds.iter().map(|kind| kind.kind.clone()).collect(),
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
    assert!(
        actions.iter().any(|action| matches!(action, Action::Direct(DirectEffect::RetryLater)))
    );
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
    assert!(!actions.iter().any(|action| matches!(action, Action::Activate(_))));
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
    assert!(actions.iter().any(|action| matches!(action, Action::Activate(_))));
    let (_, owned, retired_kinds) = kinds(&driver);
    assert_eq!(owned, ["ConfigMap", "Service"]);
    assert_eq!(retired_kinds, ["Secret"]);
    let gone = vec![Kind::namespaced("v1", "Secret", "secrets")];
    driver.handle("m", Input::LeftoversGone(gone));
    let (_, owned, retired_kinds) = kinds(&driver);
    assert_eq!((owned, retired_kinds), (vec!["ConfigMap".into(), "Service".into()], vec![]));
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

/// The commit that an action asks for.
fn commit_in(actions: &[Action<Fake>]) -> (Digest, Value) {
    actions.iter().find_map(commit_of_kinds).expect("a commit of kinds")
}

fn committed((digest, parameters): (Digest, Value), result: Result<(), Rejection>) -> Input<Fake> {
    Input::KindsCommitted { digest, parameters, result }
}

fn activates(actions: &[Action<Fake>]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Activate(_)))
}

/// The owned kinds in a status.
fn owned_in(report: &Report) -> Vec<String> {
    let owned = report.members["ownedKinds"].as_array().unwrap();
    owned.iter().map(|kind| kind["kind"].as_str().unwrap().to_owned()).collect()
}

fn copies(generation: i64, kind: &str) -> Input<Fake> {
    with_parameters(generation, &json!({"copies": name(kind)}))
}

#[test]
fn new_owned_kinds_are_active_only_after_the_status_names_them() {
    let mut driver = active(&json!({}));
    let job = check_of(&driver.handle("m", copies(2, "Secret")));
    let actions = driver.handle("m", found(&job));
    assert!(!activates(&actions));
    assert_eq!(kinds(&driver).1, ["ConfigMap"]);
    assert_eq!(ready(&driver).0, "CheckingParameters");
    let report = driver.report("m").unwrap();
    assert_eq!(owned_in(&report), ["ConfigMap", "Secret"], "the status that is to be written");
    let actions = driver.handle("m", committed(commit_in(&actions), Ok(())));
    assert!(activates(&actions));
    assert_eq!(kinds(&driver).1, ["ConfigMap", "Secret"]);
    assert_eq!(ready(&driver).0, "RevisionActive");
    // Kinds that the status names already are active at once.
    let job = check_of(&driver.handle("m", with_parameters(3, &json!({}))));
    assert!(activates(&driver.handle("m", found(&job))));
    let job = check_of(&driver.handle("m", copies(4, "Secret")));
    assert!(activates(&driver.handle("m", found(&job))));
}

#[test]
fn new_owned_kinds_are_not_active_if_the_status_cannot_be_written() {
    let mut driver = active(&json!({}));
    let mut job = check_of(&driver.handle("m", copies(2, "Secret")));
    for _ in 0..3 {
        let commit = commit_in(&driver.handle("m", found(&job)));
        let rejection = Rejection::new("NotCommitted", "no answer", RetryPolicy::Later);
        let actions = driver.handle("m", committed(commit, Err(rejection)));
        assert!(!activates(&actions));
        assert!(
            actions.iter().any(|action| matches!(action, Action::Direct(DirectEffect::RetryLater)))
        );
        assert_eq!(ready(&driver).0, "NotCommitted");
        assert_eq!(kinds(&driver).1, ["ConfigMap"]);
        job = check_of(&driver.handle("m", Event::Retry));
    }
    let commit = commit_in(&driver.handle("m", found(&job)));
    assert!(activates(&driver.handle("m", committed(commit, Ok(())))));
    assert_eq!(kinds(&driver).1, ["ConfigMap", "Secret"]);
}

#[test]
fn parameters_that_change_meanwhile_drop_the_commit() {
    let mut driver = active(&json!({}));
    let job = check_of(&driver.handle("m", copies(2, "Secret")));
    let first = commit_in(&driver.handle("m", found(&job)));
    let job = check_of(&driver.handle("m", copies(3, "Service")));
    assert!(driver.handle("m", committed(first.clone(), Ok(()))).is_empty());
    let second = commit_in(&driver.handle("m", found(&job)));
    assert!(driver.handle("m", committed(first, Ok(()))).is_empty());
    assert!(activates(&driver.handle("m", committed(second, Ok(())))));
    let (_, owned, retired_kinds) = kinds(&driver);
    assert_eq!(
        (owned, retired_kinds),
        (vec!["ConfigMap".into(), "Service".into()], vec!["Secret".into()])
    );
}

#[test]
fn kinds_of_parameters_that_were_taken_back_are_forgotten() {
    let mut driver = active(&json!({}));
    let job = check_of(&driver.handle("m", copies(2, "Secret")));
    let commit = commit_in(&driver.handle("m", found(&job)));
    driver.handle("m", with_parameters(3, &json!({})));
    assert!(driver.handle("m", committed(commit, Ok(()))).is_empty());
    let (_, owned, retired_kinds) = kinds(&driver);
    assert_eq!((owned, retired_kinds), (vec!["ConfigMap".into()], vec!["Secret".into()]));
    let gone = vec![Kind::namespaced("v1", "Secret", "secrets")];
    driver.handle("m", Input::LeftoversGone(gone));
    assert_eq!(owned_in(&driver.report("m").unwrap()), ["ConfigMap"]);
}

#[test]
fn decision_of_a_candidate_names_its_owned_kinds() {
    let mut driver = driver();
    driver.handle("m", copies(1, "Secret"));
    driver.handle("m", source("a"));
    let job = check_of(&driver.handle("m", loaded("a", described)));
    let actions = driver.handle("m", found(&job));
    assert!(actions.iter().any(|action| matches!(action, Action::Commit { .. })));
    let decision = driver.committed_status("m", job.digest).unwrap();
    assert_eq!(owned_in(&decision), ["ConfigMap", "Secret"]);
}

#[test]
fn decision_of_a_rollback_names_the_owned_kinds_of_the_previous_revision() {
    let mut driver = active(&json!({"copies": name("Secret")}));
    driver.handle("m", source("b"));
    let fixed = |manifest: &mut Manifest| {
        described(manifest);
        manifest.kind_parameters.clear();
    };
    handle(&mut driver, loaded("b", fixed));
    let gone = vec![Kind::namespaced("v1", "Secret", "secrets")];
    driver.handle("m", Input::LeftoversGone(gone.clone()));
    assert_eq!(owned_in(&driver.report("m").unwrap()), ["ConfigMap"]);
    let rejection = Rejection::new("GuestTrapped", "trapped", RetryPolicy::Later);
    let digest = component("b").digest;
    driver.handle("m", Event::FailureThresholdExceeded { digest, rejection });
    // The search for leftovers may have begun before.
    driver.handle("m", Input::LeftoversGone(gone));
    assert_eq!(owned_in(&driver.rollback_status("m").unwrap()), ["ConfigMap", "Secret"]);
}

#[test]
fn restored_revision_is_active_after_the_status_names_the_kinds_of_changed_parameters() {
    let status = active(&json!({"target": name("Service")}));
    let status = Value::Object(status.report("m").unwrap().members);
    let mut driver = driver();
    let parameters = json!({"target": name("Service"), "copies": name("Secret")});
    let spec = with(json!({"parameters": parameters}));
    driver.handle("m", named("m", 2, &spec, &status));
    driver.handle("m", source("a"));
    let job = check_of(&driver.handle("m", loaded("a", described)));
    let actions = driver.handle("m", found(&job));
    assert!(!activates(&actions));
    let report = driver.report("m").unwrap();
    assert_eq!(owned_in(&report), ["ConfigMap", "Secret"]);
    assert_eq!(report.members["primary"], status["primary"], "it stays in the status");
    assert!(activates(&driver.handle("m", committed(commit_in(&actions), Ok(())))));
    assert_eq!(kinds(&driver).1, ["ConfigMap", "Secret"]);
}

#[test]
fn kinds_are_resolved_again_when_one_is_served_otherwise() {
    let parameters = json!({"target": name("Service"), "copies": name("Secret")});
    let mut driver = active(&parameters);
    // The same answer changes nothing.
    let job = check_of(&driver.handle("m", Event::KindsChanged));
    assert_eq!(driver.handle("m", found(&job)).iter().map(show).collect::<Vec<_>>(), [""; 0]);
    let actions = driver.handle("m", Event::KindsChanged);
    assert_eq!(actions.iter().map(show).count(), 1, "no report of the check");
    let actions = driver.handle("m", found_with(&check_of(&actions), Kind::cluster));
    assert!(!activates(&actions), "the status names another Secret");
    assert!(activates(&driver.handle("m", committed(commit_in(&actions), Ok(())))));
    let status = driver.report("m").unwrap().members;
    assert_eq!(status["primary"]["clusterScoped"], true);
    assert_eq!(status["ownedKinds"][1]["clusterScoped"], true);
    assert_eq!(kinds(&driver).2, [""; 0]);
}
