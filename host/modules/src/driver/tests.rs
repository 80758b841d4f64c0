//! The driver with fake guests: bytes, guests and settings find each other.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::testing::{Fake, manifest};

fn module(generation: i64, spec: &Value) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": generation},
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

fn show(action: &Action<Fake>) -> String {
    match action {
        Action::Fetch(source) => format!("fetch {source}"),
        Action::Load(job) => {
            let name = String::from_utf8_lossy(&job.component.bytes[4..]).into_owned();
            format!("load {name} within {} bytes", job.limits.memory_bytes)
        }
        Action::InstallCrds { crds, .. } => {
            let crds: Vec<_> =
                crds.iter().map(|crd| format!("{} granted={}", crd.name, crd.granted)).collect();
            format!("install {}", crds.join(", "))
        }
        Action::Serve(served) => format!(
            "serve {} #{} parameters={} memory={}",
            served.guest.manifest.name,
            served.version,
            served.settings.parameters,
            served.guest.limits.memory_bytes
        ),
        Action::RetryLater => "retry later".into(),
        Action::Report(report) => {
            let ready = report.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
            format!("report {} {}", report.generation, ready.reason)
        }
        Action::Notify(notice) => format!("notify {}", notice.reason),
        Action::Stop => "stop".into(),
    }
}

fn check(
    driver: &mut Driver<Fake>,
    inputs: impl IntoIterator<Item = Input<Fake>>,
    expected: &Expect,
) {
    let mut out = String::new();
    for input in inputs {
        let actions = driver.handle("m", input);
        out += &actions.iter().map(show).collect::<Vec<_>>().join("; ");
        out.push('\n');
    }
    expected.assert_eq(&out);
}

fn driver() -> Driver<Fake> {
    Driver::new(Place::Cluster, Limits::default())
}

#[test]
fn a_module_is_fetched_loaded_and_served_and_then_replaced() {
    let mut driver = driver();
    check(
        &mut driver,
        [
            module(1, &spec()),
            module(1, &spec()),
            source("a"),
            loaded("a", |_| {}),
            source("b"),
            loaded("b", |_| {}),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting

            load a within 67108864 bytes; report 1 Loading
            serve a #1 parameters=null memory=67108864; notify Serving; report 1 Serving
            load b within 67108864 bytes; report 1 Loading
            serve b #2 parameters=null memory=67108864; notify Serving; report 1 Serving
        "#]],
    );
    let served = driver.modules().get("m").unwrap();
    assert_eq!((served.guest.manifest.name.as_str(), served.version), ("b", 2));
}

#[test]
fn a_call_in_flight_keeps_its_version() {
    let mut driver = driver();
    for input in [module(1, &spec()), source("a"), loaded("a", |_| {})] {
        driver.handle("m", input);
    }
    let in_flight = driver.modules().get("m").unwrap();
    for input in [source("b"), loaded("b", |_| {}), Input::Gone] {
        driver.handle("m", input);
    }
    assert_eq!(in_flight.guest.manifest.name, "a");
    assert!(driver.modules().get("m").is_none());
    assert_eq!(driver.names().count(), 0);
}

#[test]
fn limits_change_without_a_load_and_parameters_only_if_they_fit() {
    let schema = json!({"properties": {"size": {"type": "integer"}}});
    check(
        &mut driver(),
        [
            module(1, &with(json!({"parameters": {"size": 1}}))),
            source("a"),
            loaded("a", |manifest| manifest.parameters_schema = Some(schema)),
            module(2, &with(json!({"parameters": {"size": 1}, "limits": {"memory": "1Mi"}}))),
            module(3, &with(json!({"parameters": {"size": "x"}, "limits": {"memory": "2Mi"}}))),
            module(4, &with(json!({"parameters": {"size": 2}}))),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            serve a #1 parameters={"size":1} memory=67108864; notify Serving; report 1 Serving
            serve a #2 parameters={"size":1} memory=1048576; report 2 Serving
            notify InvalidParameters; serve a #3 parameters={"size":1} memory=2097152; report 3 InvalidParameters
            serve a #4 parameters={"size":2} memory=67108864; report 4 Serving
        "#]],
    );
}

#[test]
fn a_candidate_that_refuses_the_parameters_is_loaded_again_when_they_change() {
    check(
        &mut driver(),
        [
            module(1, &with(json!({"parameters": {"size": 1}}))),
            source("a"),
            loaded("a", |_| {}),
            module(2, &spec()),
            loaded("a", |_| {}),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            notify InvalidParameters; report 1 InvalidParameters
            load a within 67108864 bytes; report 2 Loading
            serve a #1 parameters=null memory=67108864; notify Serving; report 2 Serving
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
            module(1, &with(json!({"crdGroups": ["quay.io"]}))),
            source("a"),
            loaded("a", |manifest| {
                manifest.crds = vec![definition("quay.io", "xs"), definition("example.com", "ys")];
            }),
            Input::Crds { digest: component("a").digest, result: Ok(()) },
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            install xs.quay.io granted=true, ys.example.com granted=false; report 1 InstallingCrds
            serve a #1 parameters=null memory=67108864; notify Serving; report 1 Serving
        "#]],
    );
}

#[test]
fn a_manifest_that_makes_no_sense_is_refused() {
    check(
        &mut driver(),
        [
            module(1, &spec()),
            source("a"),
            loaded("a", |manifest| manifest.primary.plural = "pods/exec".into()),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            notify InvalidManifest; report 1 InvalidManifest
        "#]],
    );
}

#[test]
fn bytes_are_kept_only_while_they_may_be_loaded() {
    let mut driver = driver();
    let kept = |driver: &Driver<Fake>| {
        let life = &driver.lives["m"];
        (life.component.is_some(), life.aside.is_some())
    };
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    assert_eq!(kept(&driver), (true, false));
    driver.handle("m", loaded("a", |_| {}));
    assert_eq!(kept(&driver), (false, false));
    driver.handle("m", source("b"));
    let later = Verdict::new("Busy", "busy", Again::Later);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(later) });
    assert_eq!(kept(&driver), (true, false));
    assert_eq!(
        driver.handle("m", Input::Retry).iter().map(show).next().unwrap(),
        "load b within 67108864 bytes"
    );
    let never = Verdict::new("Broken", "broken", Again::Never);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(never) });
    assert_eq!(kept(&driver), (false, false));
}

#[test]
fn a_report_says_what_serves_and_what_was_ever_owned() {
    let mut driver = driver();
    let mut first = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 7}, "spec": spec(),
        "status": {"ownedKinds": [{"apiVersion": "batch/v1", "kind": "Job"}], "conditions": []},
    });
    let module = Module::from_value(&first).unwrap();
    driver.handle("m", Input::Module(Box::new(module)));
    driver.handle("m", source("a"));
    driver.handle("m", loaded("a", |_| {}));
    let report = driver.report("m").unwrap();
    assert_eq!(
        Value::Object(report.members),
        json!({
            "digest": component("a").digest.to_string(),
            "guest": {"name": "a", "version": "0.1.0"},
            "contract": innkeeper_contract::VERSION,
            "ownedKinds": [
                {"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "v1", "kind": "ConfigMap"}
            ],
        })
    );
    // What was reported is understood when it is read back.
    first["status"] = Value::Object(driver.report("m").unwrap().members);
    assert!(Module::from_value(&first).is_ok());
}

#[test]
fn what_comes_for_a_module_that_is_gone_is_dropped() {
    let mut driver = driver();
    assert!(driver.handle("m", source("a")).is_empty());
    driver.handle("m", module(1, &spec()));
    driver.handle("m", Input::Gone);
    assert!(driver.handle("m", loaded("a", |_| {})).is_empty());
}
