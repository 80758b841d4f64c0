//! Structs of `k8s-openapi` as desired and owned objects.

use innkeeper_sdk::testing::{FakeCluster, Scenario};
use innkeeper_sdk::{Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler, read};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use typed::{Guest, Web};

fn web() -> Value {
    json!({ "metadata": { "name": "web" }, "spec": { "image": "nginx:1", "replicas": 2 } })
}

#[test]
fn struct_is_desired_with_its_kind_and_metadata() {
    let run = Scenario::<Guest>::of(web()).run();
    run.is_complete().desires_objects(2);
    run.desires::<Deployment>("web")
        .with("/apiVersion", "apps/v1")
        .with("/spec/replicas", 2)
        .with("/spec/template/spec/containers/0/image", "nginx:1")
        .without("/status");
    run.desires::<Service>("web").with("/spec/selector/app", "web");
}

#[test]
fn owned_struct_is_read_with_its_status() {
    let mut cluster = FakeCluster::<Guest>::with(web());
    cluster.settle().status("/readyReplicas", 0);
    cluster.change::<read::Deployment>("web", |deployment| {
        deployment["status"] = json!({ "readyReplicas": 2 });
    });
    cluster.settle().status("/readyReplicas", 2);
}

/// Desires a copy of a Service that it reads.
struct Copier;

impl Reconciler for Copier {
    type Primary = Web;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Web>("copier", "1.0.0").owns::<Service>().manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Web>) -> Outcome {
        let found = context.get::<Service>("central", "web").map(|found| found.object);
        let mut desired = Desired::new().object(found.unwrap_or_default());
        let metadata = desired.objects_mut()[0].metadata_mut();
        metadata.namespace.clear();
        metadata.labels.insert("copy".to_owned(), observed.name().to_owned());
        desired.complete()
    }
}

#[test]
fn copy_of_a_read_struct_has_no_fields_of_the_api_server() {
    let run = Scenario::<Copier>::of(web())
        .with_object(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "web", "namespace": "central", "uid": "1", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": { "app": "web" },
                "managedFields": [{ "manager": "kubectl" }],
                "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
                "ownerReferences": [
                    { "apiVersion": "example.com/v1", "kind": "Web", "name": "web", "uid": "2" },
                ],
            },
            "spec": { "ports": [{ "port": 80 }] },
            "status": { "loadBalancer": {} },
        }))
        .run();
    let copy = run.desires::<Service>("web").without("/status").with("/spec/ports/0/port", 80);
    let metadata = copy.object()["metadata"].clone();
    assert_eq!(metadata, json!({ "name": "web", "labels": { "app": "web", "copy": "web" } }));
}
