//! Objects of kinds without a builder.

use innkeeper_sdk::testing::{FakeCluster, Scenario};
use innkeeper_sdk::{
    Apply as _, Context, Describe, Desired, Manifest, Observed, Outcome, Raw, Reconciler, Resource,
    kind,
};
use serde_json::{Value, json};

kind!(Site, "example.com/v1", "sites");
kind!(Certificate, "cert-manager.io/v1", "certificates");
kind!(ClusterIssuer, "cert-manager.io/v1", "clusterissuers", Cluster);

/// Desires a Certificate with the content of the primary's spec.
struct Guest;

impl Reconciler for Guest {
    type Primary = Raw<Site>;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Site>("site", "1.0.0").owns::<Certificate>().manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Raw<Site>>) -> Outcome {
        let content = observed.primary().field::<Value>("/spec/content").unwrap_or_default();
        let certificate = Raw::<Certificate>::new(observed.name(), content.unwrap_or_default());
        Desired::new().object(certificate.label("site", observed.name())).complete()
    }
}

fn site(content: &Value) -> Value {
    json!({ "metadata": { "name": "web" }, "spec": { "content": content } })
}

#[test]
fn raw_object_is_desired_with_its_kind_and_read_again() {
    let mut cluster = FakeCluster::<Guest>::with(site(&json!({
        "apiVersion": "other/v1",
        "kind": "Other",
        "metadata": { "labels": { "app": "web" }, "uid": "1" },
        "spec": { "secretName": "web-tls" },
    })));
    cluster.settle();

    let stored = cluster.object::<Certificate>("web").clone();
    assert_eq!(stored["apiVersion"], "cert-manager.io/v1");
    assert_eq!(stored["metadata"]["labels"], json!({ "app": "web", "site": "web" }));
    assert_eq!(stored["metadata"].get("uid"), None);
    let read: Raw<Certificate> = serde_json::from_value(stored).unwrap();
    assert_eq!(read.field::<String>("/spec/secretName").unwrap().as_deref(), Some("web-tls"));
    assert_eq!(read.field::<String>("/spec/missing").unwrap(), None);
    assert!(read.field::<u32>("/spec").is_err());
}

#[test]
fn copy_of_a_read_object_has_no_fields_of_the_api_server_and_of_other_controllers() {
    let mut content = json!({
        "metadata": {
            "name": "other", "uid": "1", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/cleanup"],
            "ownerReferences": [], "managedFields": [],
        },
        "spec": { "secretName": "web-tls" },
        "status": { "conditions": [] },
    });
    let run = Scenario::<Guest>::of(site(&content)).run();
    let copy = run.desires::<Certificate>("web").without("/status").object()["metadata"].clone();
    assert_eq!(copy, json!({ "name": "web", "labels": { "site": "web" } }));

    // Without the fields of the API server it is no copy.
    content["metadata"] = json!({ "finalizers": ["example.com/cleanup"] });
    let run = Scenario::<Guest>::of(site(&content)).run();
    run.desires::<Certificate>("web").with("/metadata/finalizers/0", "example.com/cleanup");
}

#[test]
fn field_follows_json_pointers_below_the_object_only() {
    let certificate = Raw::<Certificate>::new(
        "web",
        json!({ "a/b": { "c~d": [1, null] }, "spec": null, "": { "": 2 } }),
    );
    let field = |pointer: &str| certificate.field::<u32>(pointer).map_err(|one| one.to_string());
    assert_eq!(field("/a~1b/c~0d/0"), Ok(Some(1)));
    assert_eq!(field("//"), Ok(Some(2)));
    for missing in ["/a~1b/c~0d/1", "/a~1b/c~0d/2", "/spec", "/spec/replicas", "/a"] {
        assert_eq!(field(missing), Ok(None), "{missing}");
    }
    for (pointer, problem) in [
        ("", "begins with '/'"),
        ("spec/replicas", "begins with '/'"),
        ("/metadata/labels", "use `Raw::metadata`"),
        ("/kind", "the kind's constants"),
    ] {
        let error = field(pointer).unwrap_err();
        assert!(error.contains(problem), "{pointer}: {error}");
    }
}

#[test]
fn members_are_written_once_when_a_guest_sets_those_of_the_kind() {
    let mut certificate = Raw::<Certificate>::new("web", json!({}));
    for member in ["apiVersion", "kind", "metadata", "status"] {
        certificate.members.insert(member.to_owned(), json!({}));
    }
    let text = serde_json::to_string(&certificate).unwrap();
    assert_eq!(text, r#"{"metadata":{"name":"web"}}"#);
}

#[test]
fn outcome_is_a_failure_when_a_raw_object_is_not_an_object() {
    for (content, problem) in [
        (json!([1]), "the content of a Certificate is not a JSON object"),
        (json!({ "metadata": { "labels": { "app": 1 } } }), "the metadata of a Certificate"),
    ] {
        let run = Scenario::<Guest>::of(site(&content)).run();
        run.failed_because("UnwritableOutcome");
        let message = run.failure().map(|failure| failure.message.clone()).unwrap_or_default();
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn kind_has_the_scope_that_the_macro_names() {
    assert!(!ClusterIssuer::kind().is_namespaced());
    assert!(Certificate::kind().is_namespaced());
    assert_eq!(Raw::<ClusterIssuer>::kind(), ClusterIssuer::kind());
}
