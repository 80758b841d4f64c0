//! Kinds that a module no longer declares, and its finalizer.

use super::*;

fn immediate() -> Value {
    with(json!({"rollout": {"strategy": "Immediate"}}))
}

/// A Module that is being deleted.
fn deleted(generation: i64) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {
            "name": "m", "generation": generation, "finalizers": [module::FINALIZER],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": immediate(),
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

/// A driver whose module has an active revision; nothing is previewed.
fn active(change: impl FnOnce(&mut Manifest)) -> Driver<Fake> {
    let mut driver = driver();
    driver.handle("m", module(1, &immediate()));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", change));
    driver
}

fn retired_kinds(driver: &Driver<Fake>) -> Vec<String> {
    let revision = driver.active_revision("m").unwrap();
    revision.retired_kinds.iter().map(ToString::to_string).collect()
}

fn owned(driver: &Driver<Fake>) -> Vec<String> {
    let report = driver.report("m").unwrap();
    let kinds = report.members["ownedKinds"].as_array().unwrap();
    kinds.iter().map(|kind| kind["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn kind_that_a_revision_drops_is_watched_until_no_object_is_left() {
    let mut driver = active(|_| {});
    driver.handle("m", source("b"));
    handle(&mut driver, loaded("b", |manifest| manifest.owned.clear()));
    assert_eq!(retired_kinds(&driver), ["v1 ConfigMap"]);
    assert_eq!(owned(&driver), ["ConfigMap"]);

    let config_map = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let shown: Vec<_> = driver
        .handle("m", Input::LeftoversGone(vec![config_map.clone()]))
        .iter()
        .map(show)
        .collect();
    assert_eq!(shown, ["activate b #3 parameters=null memory=67108864", "report 1 RevisionActive"]);
    assert!(retired_kinds(&driver).is_empty());
    assert!(!driver.report("m").unwrap().members.contains_key("ownedKinds"));
    assert!(driver.handle("m", Input::LeftoversGone(vec![config_map])).is_empty(), "once");
}

#[test]
fn kind_that_is_declared_again_is_no_leftover() {
    let mut driver = active(|_| {});
    driver.handle("m", source("b"));
    handle(&mut driver, loaded("b", |manifest| manifest.owned.clear()));
    driver.handle("m", source("c"));
    handle(&mut driver, loaded("c", |_| {}));
    assert!(retired_kinds(&driver).is_empty());
    let config_map = Kind::namespaced("v1", "ConfigMap", "configmaps");
    assert!(driver.handle("m", Input::LeftoversGone(vec![config_map])).is_empty(), "too late");
    assert_eq!(owned(&driver), ["ConfigMap"]);
}

#[test]
fn teardown_has_the_kind_and_the_finalizer_of_the_active_revision() {
    let mut driver = active(|manifest| manifest.finalizer = Some(String::new()));
    assert_eq!(driver.report("m").unwrap().members["finalizer"], "innkeeper.dev/m");
    let shown: Vec<_> = driver.handle("m", deleted(2)).iter().map(show).collect();
    assert_eq!(
        shown,
        [
            "tear down quay.io/v1alpha1 Podroute with finalizer Some(\"\"), active",
            "report 2 Finalizing"
        ]
    );
    let shown: Vec<_> =
        driver.handle("m", Event::TornDown(Ok("done".into()))).iter().map(show).collect();
    assert_eq!(shown, ["notify FinalizersRemoved", "remove finalizer"]);
    let shown: Vec<_> = driver.handle("m", Input::Gone).iter().map(show).collect();
    assert_eq!(shown, ["stop"]);
}

#[test]
fn finalizer_is_reported_before_the_first_primary_has_it() {
    let mut driver = driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    driver.handle("m", loaded("a", |manifest| manifest.finalizer = Some("quay.io/c".into())));
    // The decision is being written.
    assert!(driver.active_revision("m").is_none());
    assert_eq!(driver.report("m").unwrap().members["finalizer"], "quay.io/c");
}

#[test]
fn module_of_a_folder_with_a_finalizer_is_torn_down_when_its_file_is_deleted() {
    let mut driver = Driver::new(SourceKind::Directory, Limits::default());
    let spec = json!({"source": {"file": "m.wasm"}});
    driver.handle("m", module(0, &spec));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", |manifest| manifest.finalizer = Some(String::new())));
    let shown: Vec<_> = driver.handle("m", Input::Gone).iter().map(show).collect();
    assert_eq!(shown[0], "tear down quay.io/v1alpha1 Podroute with finalizer Some(\"\"), active");
    let shown: Vec<_> = driver.handle("m", Input::Gone).iter().map(show).collect();
    assert_eq!(shown, ["stop"]);
}
