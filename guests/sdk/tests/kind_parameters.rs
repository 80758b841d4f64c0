//! A guest whose kinds are parameters of the Module.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_sdk::testing::Scenario;
use innkeeper_sdk::{
    Context, Describe, Desired, KindName, KindObject, Manifest, Observed, Outcome, Policy, Raw,
    Reconciler, kind,
};
use serde::Deserialize;
use serde_json::{Value, json};

kind!(StatefulSet, "apps/v1", "statefulsets");
kind!(Namespace, "v1", "namespaces", Cluster);

struct Copier;

#[derive(Deserialize)]
struct Parameters {
    copies: KindName,
    watch: KindName,
}

impl Reconciler for Copier {
    type Primary = Raw<StatefulSet>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<StatefulSet>("copier", "1.0.0")
            .parameters(json!({"properties": {"target": {}, "copies": {}, "watch": {}}}))
            .decorator_of_parameter("target")
            .owns_parameter("copies")
            .reads_parameter("watch")
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Self::Primary>) -> Outcome {
        let Parameters { copies, watch } = observed.parameters().unwrap();
        let read = context.get_of(&watch, observed.namespace(), "source").unwrap();
        let members = json!({"data": read.object["data"]});
        let copy = KindObject::new(&copies, observed.name(), members).label("app", "web");
        Desired::new().object(copy).complete()
    }
}

#[test]
fn guest_reads_and_desires_the_kinds_of_its_parameters() {
    let kind = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind});
    let run = Scenario::<Copier>::of(json!({"metadata": {"name": "web"}}))
        .parameters(json!({
            "target": kind("apps/v1", "Deployment"),
            "copies": kind("v1", "Secret"),
            "watch": kind("v1", "ConfigMap"),
        }))
        .with_object(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "source"}, "data": {"a": "b"}}))
        .run();
    let expected: Vec<Value> = vec![json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "web", "labels": {"app": "web"}}, "data": {"a": "b"}})];
    assert_eq!(run.is_complete().objects(), expected);
}

/// Puts a label with its name on each object of the kind `target`, as the example pod-name-label
/// does on Pods.
struct NameLabel;

#[derive(Deserialize)]
struct Target {
    target: KindName,
}

impl Reconciler for NameLabel {
    type Primary = Raw<StatefulSet>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<StatefulSet>("name-label", "1.0.0")
            .parameters(json!({"properties": {"target": {}}}))
            .decorator_of_parameter("target")
            .merges_into_parameter("target")
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Self::Primary>) -> Outcome {
        let Target { target } = observed.parameters().unwrap();
        let label =
            KindObject::new(&target, observed.name(), json!({})).label("name", observed.name());
        Desired::new().object_with(label, [Policy::Merge]).complete()
    }
}

#[test]
fn guest_decorates_the_kind_of_its_parameter_whichever_it_is() {
    for (api_version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment")] {
        let run = Scenario::<NameLabel>::of(json!({"metadata": {"name": "web"}}))
            .parameters(json!({"target": {"apiVersion": api_version, "kind": kind}}))
            .run();
        let expected: Vec<Value> = vec![json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "web", "labels": {"name": "web"}}})];
        assert_eq!(run.is_complete().objects(), expected);
    }
}

/// The tests of the SDKs in other languages compare with the same file.
#[test]
fn manifest_with_kind_parameters_is_that_of_every_sdk() {
    let expected: Value = serde_json::from_str(include_str!("kind_parameters.json")).unwrap();
    let manifest = Describe::reconciler_of::<Namespace>("copier", "1.0.0")
        .parameters(expected["parametersSchema"].clone())
        .decorator_of_parameter("target")
        .owns_parameter("copies")
        .merges_into_parameter("labelled")
        .reads_parameter("watch")
        .manifest();
    assert_eq!(serde_json::to_value(manifest).unwrap(), expected);
}
