//! A guest whose kinds are parameters of the Module.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_sdk::testing::Scenario;
use innkeeper_sdk::{
    Context, Describe, Desired, KindName, KindObject, Manifest, Observed, Outcome, Raw, Reconciler,
    kind,
};
use serde::Deserialize;
use serde_json::{Value, json};

kind!(StatefulSet, "apps/v1", "statefulsets");

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
