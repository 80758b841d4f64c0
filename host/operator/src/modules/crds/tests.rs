//! Installations that end between two definitions.

use std::sync::{Arc, Mutex as SyncMutex};

use bytes::Bytes;
use http_body_util::Full;
use innkeeper_cluster::{Account, Cluster, Env, SecretKey, Settings};
use serde_json::json;

use super::*;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/// The definition of things with this plural.
fn definition(plural: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.dev"), "uid": plural, "resourceVersion": "1"},
        "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

/// Adopts the definitions `first` and `second`, which somebody else has installed; `withdraws` sets
/// spec.crds to Keep while the second is read, and the second cannot be written. Gives the result
/// and the names of the definitions that the server was asked to change.
async fn adopt(withdraws: bool) -> (FailedInstallation, Vec<String>) {
    let (adopts, writes) = (Arc::new(AtomicBool::new(true)), Arc::new(SyncMutex::default()));
    let (answers, log) = (adopts.clone(), writes.clone());
    let service = tower::service_fn(move |request: http::Request<_>| {
        let name = request.uri().path().strip_prefix(PATH).unwrap_or_default().to_owned();
        let is_write = request.method() == http::Method::PATCH;
        let plural = name.split('.').next().unwrap_or_default().to_owned();
        if withdraws && plural == "second" {
            answers.store(false, Ordering::SeqCst);
        }
        if is_write {
            let mut log: std::sync::MutexGuard<'_, Vec<String>> = log.lock().unwrap();
            log.push(plural.clone());
        }
        let (code, body) = match &*plural {
            "" => (
                200,
                json!({"kind": "APIResourceList", "resources": [{"name": "customresourcedefinitions",
                    "kind": "CustomResourceDefinition", "namespaced": false}]}),
            ),
            "second" if is_write => (
                403,
                json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
                    "message": "no"}),
            ),
            plural => (200, definition(plural)),
        };
        async move {
            let response = http::Response::builder().status(code);
            response.body(Full::<Bytes>::from(body.to_string()))
        }
    });
    let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
    let cluster = Cluster::over(service, env, Settings::default(), SecretKey::new(b"test"));
    let installer = Installer {
        host: &cluster.host(),
        client: &cluster.as_account(&Account::new("a", "b")),
        module: "things",
        namespaces: &BTreeSet::new(),
        adoption: Some(Adoption::default()),
        adopts: &adopts,
        object_checks: &Mutex::default(),
    };
    let requests = ["first", "second"].map(|plural| CrdRequest {
        name: format!("{plural}.example.dev"),
        group: "example.dev".into(),
        granted: true,
        dropped: Vec::new(),
        definition: {
            let mut definition = definition(plural);
            definition["metadata"] = json!({"name": format!("{plural}.example.dev")});
            definition
        },
    });
    let failed = installer.install(&requests).await.unwrap_err();
    let writes = writes.lock().unwrap().clone();
    (failed, writes)
}

fn reason(failed: &FailedInstallation) -> &str {
    match &failed.refusal {
        CrdRefusal::Rejected(rejection) => &rejection.reason,
        CrdRefusal::Held(held) => &held.rejection.reason,
    }
}

#[tokio::test(start_paused = true)]
async fn installation_that_fails_at_the_second_definition_names_the_first() {
    let (failed, writes) = adopt(false).await;
    assert_eq!(
        (reason(&failed), &*writes),
        ("CRDForbidden", &["first", "second"].map(String::from)[..])
    );
    assert_eq!(failed.installed.adopted, ["first.example.dev"]);
}

#[tokio::test(start_paused = true)]
async fn adoption_that_is_not_asked_for_any_more_writes_nothing() {
    let (failed, writes) = adopt(true).await;
    assert_eq!((reason(&failed), writes.len()), ("AdoptionWithdrawn", 0));
}
