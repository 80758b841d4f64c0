//! Installations that end between two definitions.

use std::sync::{Arc, Mutex as SyncMutex};

use bytes::Bytes;
use http_body_util::Full;
use innkeeper_cluster::{Account, Cluster, Env, SecretDigestKey, Settings};
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

/// The same with a schema whose spec has these properties.
fn with_properties(plural: &str, properties: &Value) -> Value {
    let mut definition = definition(plural);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"] = json!({"type": "object", "properties": properties});
    definition
}

/// How an adoption ends: why it fails, and the names of the definitions that it wrote and that the
/// server was asked to change.
struct Ended {
    refusal: CrdRefusal,
    written: InstalledCrds,
    writes: Vec<String>,
}

/// Adopts the foreign definitions `first` and `second`, of which the second cannot be written. The
/// spec allows `later` from this request for the second on.
async fn adopt(later: CrdGrant) -> Ended {
    adopt_with(&json!({}), granted(), later, ("second", http::Method::GET)).await
}

/// The same for definitions whose spec has these properties, which those of the module lack. The
/// spec and the approval allow `before`, and `later` from the request `change` on.
async fn adopt_with(
    properties: &Value,
    before: CrdGrant,
    later: CrdGrant,
    change: (&'static str, http::Method),
) -> Ended {
    let (spec, grant) = watch::channel(before);
    let properties = properties.clone();
    let writes = Arc::new(SyncMutex::default());
    let log = writes.clone();
    let service = tower::service_fn(move |request: http::Request<_>| {
        let name = request.uri().path().strip_prefix(PATH).unwrap_or_default().to_owned();
        let is_write = request.method() == http::Method::PATCH;
        let plural = name.split('.').next().unwrap_or_default().to_owned();
        if (&*plural, request.method()) == (change.0, &change.1) {
            spec.send_replace(later.clone());
        }
        if is_write {
            let mut log: std::sync::MutexGuard<'_, Vec<String>> = log.lock().unwrap();
            log.push(plural.clone());
        }
        let (code, body) = match &*plural {
            "" if request.uri().path().starts_with("/apis/example.dev/v1/") => (
                200,
                json!({"kind": "ThingList", "metadata": {"resourceVersion": "1"}, "items": []}),
            ),
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
            plural => (200, with_properties(plural, &properties)),
        };
        async move {
            let response = http::Response::builder().status(code);
            response.body(Full::<Bytes>::from(body.to_string()))
        }
    });
    let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
    let cluster = Cluster::over(service, env, Settings::default(), SecretDigestKey::new(b"test"));
    let installer = Installer {
        host: &cluster.host(),
        client: &cluster.as_account(&Account::new("a", "b")),
        module: "things",
        namespaces: &BTreeSet::new(),
        adopts: true,
        grant: &grant,
        object_checks: &Mutex::default(),
    };
    let requests = ["first", "second"].map(|plural| CrdRequest {
        name: format!("{plural}.example.dev"),
        group: "example.dev".into(),
        granted: true,
        dropped: Vec::new(),
        definition: {
            let mut definition = with_properties(plural, &json!({}));
            definition["metadata"] = json!({"name": format!("{plural}.example.dev")});
            definition
        },
    });
    let mut written = InstalledCrds::default();
    let refusal = installer.install(&requests, &mut written).await.unwrap_err();
    let writes = writes.lock().unwrap().clone();
    Ended { refusal, written, writes }
}

/// The spec allows to adopt the definitions.
fn granted() -> CrdGrant {
    CrdGrant { groups: BTreeSet::from(["example.dev".to_owned()]), adopts: true, approved: None }
}

#[tokio::test(start_paused = true)]
async fn installation_that_fails_at_the_second_definition_names_the_first() {
    let Ended { refusal, written, writes } = adopt(granted()).await;
    let message = refusal.into_rejection().message;
    assert!(message.contains("second.example.dev: ServiceAccount a/b may not patch"), "{message}");
    assert_eq!(writes, ["first", "second"]);
    let names: Vec<&str> = written.adopted.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["first.example.dev"]);
}

#[tokio::test(start_paused = true)]
async fn installation_writes_nothing_when_the_spec_does_not_allow_it_any_more() {
    let keeps = CrdGrant { adopts: false, ..granted() };
    let narrows = CrdGrant { groups: BTreeSet::new(), ..granted() };
    for (later, next) in [
        (keeps, "set spec.crds to Adopt, and spec.paused to false"),
        (narrows, "add example.dev to spec.allowedCRDGroups"),
    ] {
        let Ended { refusal, written, writes } = adopt(later).await;
        let message = refusal.into_rejection().message;
        assert!(message.ends_with(&format!("does not allow it any more; {next}")), "{message}");
        assert!(written.is_empty() && writes.is_empty(), "{written:?} {writes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn installation_writes_no_definition_that_takes_less_once_its_approval_is_withdrawn() {
    let narrowed = json!({"color": {"type": "string"}});
    let (get, patch) = (http::Method::GET, http::Method::PATCH);
    // Given definitions that would take less, they are held, and an approval lets them be written.
    let held = adopt_with(&narrowed, granted(), granted(), ("second", get.clone())).await;
    let CrdRefusal::Held(held) = held.refusal else { panic!("{:?}", held.refusal) };
    let approved = || CrdGrant { approved: Some(held.approval), ..granted() };
    let ended = adopt_with(&narrowed, approved(), approved(), ("second", get.clone())).await;
    assert_eq!(ended.writes, ["first", "second"]);

    // When the approval is withdrawn before the first write, then nothing is written.
    let ended = adopt_with(&narrowed, approved(), granted(), ("second", get)).await;
    assert_eq!(ended.refusal, CrdRefusal::Held(held.clone()));
    assert!(ended.writes.is_empty(), "{:?}", ended.writes);

    // When it is withdrawn during the first write, then the second is not written.
    let ended = adopt_with(&narrowed, approved(), granted(), ("first", patch)).await;
    let message = ended.refusal.into_rejection().message;
    assert!(message.ends_with("does not allow it any more; approve the change again"), "{message}");
    assert_eq!(ended.writes, ["first"]);
    assert_eq!(ended.written.adopted.len(), 1);
}
