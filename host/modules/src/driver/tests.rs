//! The driver with fake guests: which actions follow from which inputs.

mod account;
mod approval;
mod grant;
mod installations;
mod kind_parameters;
mod overlap;
mod parameters;
mod policy;
mod primary;
mod random;
mod report;
mod teardown;

use expect_test::{Expect, expect};
use innkeeper_contract::Kind;
use serde_json::{Value, json};

use innkeeper_sandbox::schema::validate;

use super::*;
use crate::crd_installation::{CrdPurpose, FinishedInstallation};
use crate::installed_crds::{AdoptedCrd, InstalledCrds};
use crate::machine::{Event, Rejection, RetryPolicy};
use crate::module::{self, Module};
use crate::rollout::{PlannedChange, Preview};
use crate::source::{Component, SourceError};
use crate::testing::{Fake, manifest};
use innkeeper_contract::Manifest;
use innkeeper_core::foreign;

fn module(generation: i64, spec: &Value) -> Input<Fake> {
    annotated(generation, spec, &json!({}))
}

fn annotated(generation: i64, spec: &Value, annotations: &Value) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": generation, "annotations": annotations},
        "spec": spec,
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

fn spec() -> Value {
    json!({"source": {"configMap": {"name": "m-1"}}, "serviceAccountName": "m"})
}

fn with(members: Value) -> Value {
    let mut spec = spec();
    let Value::Object(members) = members else { panic!("not an object") };
    spec.as_object_mut().unwrap().extend(members);
    spec
}

fn component(name: &str) -> Component {
    let bytes = format!("\0asm{name}");
    crate::source::unpack("it", bytes.as_bytes(), 1 << 20).unwrap()
}

fn source(name: &str) -> Input<Fake> {
    Input::Source(Ok(component(name)))
}

fn loaded(name: &str, change: impl FnOnce(&mut Manifest)) -> Input<Fake> {
    let mut manifest = manifest(name);
    change(&mut manifest);
    Input::Loaded { digest: component(name).digest, result: Ok(Fake::new(manifest)) }
}

/// The installation of a candidate's definitions ended.
fn installed(number: u64, name: &str, result: Result<(), Rejection>) -> Input<Fake> {
    Input::CrdsInstalled(Box::new(FinishedInstallation {
        purpose: CrdPurpose::Candidate,
        number,
        digest: component(name).digest,
        written: InstalledCrds::default(),
        result: result.map_err(Into::into),
    }))
}

fn show(action: &Action<Fake>) -> String {
    match action {
        Action::Fetch(source) => format!("fetch {source}"),
        Action::Load(job) => {
            let name = String::from_utf8_lossy(&job.component.bytes[4..]).into_owned();
            format!("load {name} within {} bytes", job.limits.memory_bytes)
        }
        Action::InstallCrds(installation) => {
            let crds: Vec<_> = installation
                .crds
                .iter()
                .map(|crd| format!("{} granted={}", crd.name, crd.granted))
                .collect();
            let adopts = if installation.adopts { ", over foreign ones" } else { "" };
            format!("install {}{adopts}", crds.join(", "))
        }
        Action::Activate(revision) => format!(
            "activate {} #{} parameters={} memory={}",
            revision.guest.manifest.name,
            revision.version,
            revision.spec.parameters,
            revision.guest.limits.memory_bytes
        ),
        Action::Preview { candidate, .. } => {
            format!("preview {} #{}", candidate.guest.manifest.name, candidate.version)
        }
        Action::Commit { component, .. } => {
            format!("commit{}", if component.is_some() { "" } else { " without bytes" })
        }
        Action::BeginRollbackWindow { failures_max, time, .. } => {
            format!("begin rollback window of {}s, {failures_max} may fail", time.as_secs())
        }
        Action::CommitRollback(digest) => format!("commit rollback to {digest:?}"),
        Action::RetryOverlapping(names) => format!("retry {}", names.join(", ")),
        Action::SaveSnapshot(_) => "save snapshot".into(),
        Action::CheckParameters(job) => format!("check {}", job.parameters),
        Action::CommitKinds { parameters, .. } => format!("commit kinds of {parameters}"),
        Action::Teardown(teardown) => format!(
            "tear down {} with finalizer {:?}, {}",
            teardown.primary.as_ref().map_or("nothing".to_owned(), ToString::to_string),
            teardown.finalizer,
            if teardown.is_active { "active" } else { "not active" }
        ),
        Action::Report(report) => {
            let ready = report.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
            format!("report {} {}", report.generation, ready.reason)
        }
        Action::Direct(effect) => show_direct(effect),
    }
}

fn show_direct(effect: &DirectEffect) -> String {
    match effect {
        DirectEffect::RestoreSnapshot(digest) => format!("fetch snapshot of {digest:?}"),
        DirectEffect::EndRollbackWindow => "end rollback window".into(),
        DirectEffect::ReinstallLater => "reinstall later".into(),
        DirectEffect::RemoveFinalizer => "remove finalizer".into(),
        DirectEffect::RetryLater => "retry later".into(),
        DirectEffect::Notify(notice) => format!("notify {}", notice.reason),
        DirectEffect::RemoveModule => "stop".into(),
    }
}

/// Compares a table: a line for each input, and under it a line for each action.
fn check(
    driver: &mut Driver<Fake>,
    inputs: impl IntoIterator<Item = (&'static str, Input<Fake>)>,
    expected: &Expect,
) {
    let mut lines = Vec::new();
    for (name, input) in inputs {
        lines.push(name.to_owned());
        lines.extend(handle(driver, input).iter().map(|action| format!("    {}", show(action))));
    }
    lines.push(String::new());
    expected.assert_eq(&lines.join("\n"));
}

/// Hands an input in; checks parameters and writes decisions at once.
fn handle(driver: &mut Driver<Fake>, input: impl Into<Input<Fake>>) -> Vec<Action<Fake>> {
    let mut actions = driver.handle("m", input);
    if let Some(job) = actions.iter().find_map(check_job) {
        actions.extend(driver.handle("m", job.run_with(validate)));
    }
    if let Some((digest, parameters)) = actions.iter().find_map(commit_of_kinds) {
        let committed = Input::KindsCommitted { digest, parameters, result: Ok(()) };
        actions.extend(driver.handle("m", committed));
    }
    let committing = actions.iter().find_map(|action| match action {
        Action::Commit { digest, .. } => Some(*digest),
        _ => None,
    });
    if let Some(digest) = committing {
        actions.extend(driver.handle("m", Event::Committed { digest, result: Ok(()) }));
    }
    actions
}

fn check_job(action: &Action<Fake>) -> Option<ParametersJob<Fake>> {
    match action {
        Action::CheckParameters(job) => Some(job.clone()),
        _ => None,
    }
}

fn commit_of_kinds(action: &Action<Fake>) -> Option<(Digest, Value)> {
    match action {
        Action::CommitKinds { digest, parameters } => Some((*digest, parameters.clone())),
        _ => None,
    }
}

fn driver() -> Driver<Fake> {
    Driver::new(SourceKind::Cluster, Limits::default())
}

#[test]
fn component_is_fetched_loaded_and_activated_and_then_replaced() {
    let mut driver = driver();
    check(
        &mut driver,
        [
            ("spec 1", module(1, &spec())),
            ("spec 1", module(1, &spec())),
            ("source a", source("a")),
            ("loaded a", loaded("a", |_| {})),
            ("source b", source("b")),
            ("loaded b", loaded("b", |_| {})),
            (
                "previewed b",
                Input::Previewed { digest: component("b").digest, result: Ok(Preview::default()) },
            ),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            spec 1
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                commit
                report 1 Committing
                activate a #1 parameters=null memory=67108864
                notify RevisionActive
                report 1 RevisionActive
            source b
                load b within 67108864 bytes
                report 1 Loading
            loaded b
                preview b #2
                report 1 Previewing
            previewed b
                commit
                report 1 Committing
                activate b #2 parameters=null memory=67108864
                notify RevisionActive
                begin rollback window of 120s, 0 may fail
                report 1 RevisionActive
        "#]],
    );
    let revision = driver.active_revision("m").unwrap();
    assert_eq!((revision.guest.manifest.name.as_str(), revision.version), ("b", 2));
}

#[test]
fn call_in_flight_keeps_its_revision() {
    let mut driver = driver();
    for input in [module(1, &spec()), source("a"), loaded("a", |_| {})] {
        handle(&mut driver, input);
    }
    let in_flight = driver.active_revision("m").unwrap().clone();
    for input in [source("b"), loaded("b", |_| {}), Input::Gone] {
        handle(&mut driver, input);
    }
    assert_eq!(in_flight.guest.manifest.name, "a");
    assert!(driver.active_revision("m").is_none());
    assert_eq!(driver.names().count(), 0);
}

#[test]
fn limits_change_without_a_load_and_parameters_only_if_they_fit() {
    let schema = json!({"properties": {"size": {"type": "integer"}}});
    check(
        &mut driver(),
        [
            ("spec 1", module(1, &with(json!({"parameters": {"size": 1}})))),
            ("source a", source("a")),
            ("loaded a", loaded("a", |manifest| manifest.parameters_schema = Some(schema.into()))),
            (
                "spec 2",
                module(2, &with(json!({"parameters": {"size": 1}, "limits": {"memory": "1Mi"}}))),
            ),
            (
                "spec 3",
                module(3, &with(json!({"parameters": {"size": "x"}, "limits": {"memory": "2Mi"}}))),
            ),
            ("spec 4", module(4, &with(json!({"parameters": {"size": 2}})))),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                check {"size":1}
                commit
                report 1 Committing
                activate a #1 parameters={"size":1} memory=67108864
                notify RevisionActive
                report 1 RevisionActive
            spec 2
                activate a #2 parameters={"size":1} memory=1048576
                report 2 RevisionActive
            spec 3
                activate a #3 parameters={"size":1} memory=2097152
                check {"size":"x"}
                report 3 CheckingParameters
                notify InvalidParameters
                report 3 InvalidParameters
            spec 4
                activate a #4 parameters={"size":1} memory=67108864
                check {"size":2}
                report 4 InvalidParameters
                activate a #5 parameters={"size":2} memory=67108864
                report 4 RevisionActive
        "#]],
    );
}

#[test]
fn a_candidate_that_refuses_the_parameters_is_loaded_again_when_they_change() {
    check(
        &mut driver(),
        [
            ("spec 1", module(1, &with(json!({"parameters": {"size": 1}})))),
            ("source a", source("a")),
            ("loaded a", loaded("a", |_| {})),
            ("spec 2", module(2, &spec())),
            ("loaded a", loaded("a", |_| {})),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                notify InvalidParameters
                report 1 InvalidParameters
            spec 2
                load a within 67108864 bytes
                report 2 Loading
            loaded a
                commit
                report 2 Committing
                activate a #1 parameters=null memory=67108864
                notify RevisionActive
                report 2 RevisionActive
        "#]],
    );
}

#[test]
fn definitions_are_granted_by_their_group() {
    let definition = |group: &str, plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "names": {"kind": "X", "plural": plural}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true}]},
        })
    };
    check(
        &mut driver(),
        [
            ("spec 1", module(1, &with(json!({"allowedCRDGroups": ["quay.io"]})))),
            ("source a", source("a")),
            (
                "loaded a",
                loaded("a", |manifest| {
                    manifest.crds = [definition("quay.io", "xs"), definition("example.com", "ys")]
                        .map(Into::into)
                        .into();
                }),
            ),
            ("CRDs installed", installed(1, "a", Ok(()))),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                install xs.quay.io granted=true, ys.example.com granted=false
                report 1 InstallingCRDs
            CRDs installed
                commit
                report 1 Committing
                activate a #1 parameters=null memory=67108864
                notify RevisionActive
                report 1 RevisionActive
        "#]],
    );
}

#[test]
fn invalid_manifest_is_refused() {
    check(
        &mut driver(),
        [
            ("spec 1", module(1, &spec())),
            ("source a", source("a")),
            (
                "loaded a",
                loaded("a", |manifest| {
                    manifest.primary.as_mut().unwrap().plural = "pods/exec".into();
                }),
            ),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                notify InvalidManifest
                report 1 InvalidManifest
        "#]],
    );
}

#[test]
fn bytes_are_kept_only_while_they_may_be_loaded() {
    let mut driver = driver();
    let kept = |driver: &Driver<Fake>| {
        let module_state = &driver.states["m"];
        (!module_state.components.is_empty(), module_state.candidate.checked.is_some())
    };
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    assert_eq!(kept(&driver), (true, false));
    driver.handle("m", loaded("a", |_| {}));
    assert_eq!(kept(&driver), (true, true), "to be saved, and then to be active");
    driver.handle("m", Event::Committed { digest: component("a").digest, result: Ok(()) });
    assert_eq!(kept(&driver), (false, false));
    driver.handle("m", source("b"));
    let later = Rejection::new("Busy", "busy", RetryPolicy::Later);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(later) });
    assert_eq!(kept(&driver), (true, false));
    assert_eq!(
        driver.handle("m", Event::Retry).iter().map(show).next().unwrap(),
        "load b within 67108864 bytes"
    );
    let never = Rejection::new("Broken", "broken", RetryPolicy::Never);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(never) });
    assert_eq!(kept(&driver), (false, false));
}

#[test]
fn input_for_a_deleted_module_is_dropped() {
    let mut driver = driver();
    assert!(driver.handle("m", source("a")).is_empty());
    driver.handle("m", module(1, &spec()));
    driver.handle("m", Input::Gone);
    assert!(driver.handle("m", loaded("a", |_| {})).is_empty());
}

fn reason_of(driver: &Driver<Fake>, name: &str) -> String {
    let conditions = driver.report(name).unwrap().conditions;
    conditions.into_iter().find(|condition| condition.type_ == "Ready").unwrap().reason
}

fn named(name: &str, generation: i64, spec: &Value, status: &Value) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": name, "generation": generation}, "spec": spec, "status": status,
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

#[test]
fn a_copy_that_somebody_changed_is_refused() {
    let mut driver = driver();
    let revision = json!({"digest": component("x").digest.to_string()});
    driver.handle("m", named("m", 1, &spec(), &revision));
    let actions = driver.handle("m", source("y"));
    assert!(actions.iter().any(|action| show(action).starts_with("fetch snapshot")));
    let digest = component("x").digest;
    let actions = driver.handle("m", Input::Snapshot { digest, result: Ok(component("z")) });
    assert!(actions.iter().any(|action| show(action) == "notify SnapshotChanged"));
    // The component of the source is not the last active revision: it is previewed.
    let actions = driver.handle("m", loaded("y", |_| {}));
    assert!(actions.iter().any(|action| show(action) == "preview y #1"));
}
