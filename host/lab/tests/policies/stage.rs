//! A lab with Modules of tiny guests.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use innkeeper_lab::{Api, ApiFailure, Guests, Lab, Modules, Setup, Timeout};
use innkeeper_simulator::Simulator;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// How long the tests wait for anything, in virtual time.
pub(crate) const LIMIT: Duration = Duration::from_mins(3);

/// Runs a test.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    innkeeper_lab::block_on(future).unwrap()
}

/// A lab with Modules of tiny guests, and the namespace `ns`.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    _components: tempfile::TempDir,
}

impl Stage {
    /// A lab in which all Modules are active. Each has a name, a guest, and further fields of its
    /// spec.
    pub(crate) async fn start(modules: &[(&str, Tiny, Value)]) -> Self {
        let stage = Self::begin(modules).await;
        stage.serves().await.unwrap();
        stage
    }

    /// The same, with Modules that may not become active.
    pub(crate) async fn begin(modules: &[(&str, Tiny, Value)]) -> Self {
        let components = tempfile::tempdir().unwrap();
        let documents = modules.iter().map(|(name, guest, spec)| {
            let file = components.path().join(format!("{name}.wasm"));
            std::fs::write(&file, guest.component()).unwrap();
            let mut spec = spec.clone();
            spec["source"] = json!({"file": file});
            json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": name}, "spec": spec})
        });
        let mut setup = Setup::new(3);
        setup.modules = Modules::Given(documents.collect());
        setup.objects = vec![definition(), namespace("ns"), namespace("innkeeper-system")];
        setup.keep_log = true;
        let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
        Self { lab, _components: components }
    }

    pub(crate) async fn serves(&self) -> Result<(), Timeout> {
        self.lab.serves(LIMIT).await
    }

    pub(crate) fn api(&self) -> &Api {
        self.lab.api()
    }

    /// Creates or changes an object in the namespace `ns`.
    pub(crate) async fn apply(&self, object: &Value) -> Result<(), ApiFailure> {
        self.api().apply(object, "ns").await
    }

    /// Applies an object that must be refused. Returns the status and the message.
    pub(crate) async fn refusal(&self, object: &Value) -> (u16, String) {
        match self.apply(object).await {
            Err(ApiFailure::Refused { code, message }) => (code, message),
            other => panic!("{other:?}"),
        }
    }

    /// A ConfigMap of the namespace `ns`.
    pub(crate) async fn config_map(&self, name: &str) -> Option<Value> {
        self.api().get(&format!("/api/v1/namespaces/ns/configmaps/{name}")).await.unwrap()
    }

    /// The URLs of all webhooks.
    pub(crate) async fn urls(&self) -> Vec<String> {
        urls(self.api()).await
    }

    /// Creates an object by a request. Returns the status and the warnings.
    pub(crate) fn post(&self, object: &Value) -> (u16, Vec<String>) {
        post(self.lab.simulator(), object)
    }
}

/// The URLs of all webhooks of a cluster.
pub(crate) async fn urls(api: &Api) -> Vec<String> {
    let mut urls = Vec::new();
    for kind in ["validating", "mutating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        for configuration in api.list(&path).await.unwrap() {
            let webhooks = configuration["webhooks"].as_array().unwrap().iter();
            urls.extend(
                webhooks.map(|one| one["clientConfig"]["url"].as_str().unwrap().to_owned()),
            );
        }
    }
    urls
}

fn post(simulator: &Simulator, object: &Value) -> (u16, Vec<String>) {
    let request = Request::builder()
        .method("POST")
        .uri("/api/v1/namespaces/ns/configmaps")
        .header("content-type", "application/json")
        .body(Bytes::from(object.to_string()));
    let response = simulator.request(request.unwrap());
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|one| one.to_str().unwrap().to_owned()).collect();
    (response.status().as_u16(), warnings)
}

/// A ConfigMap with a label.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": name}}, "data": {"value": value}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The definition of the primaries of [`maker`].
fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object",
        "properties": {"spec": any, "status": any}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "makers.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Maker", "plural": "makers"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": schema}]}})
}

/// A guest that makes the ConfigMap `made` of each primary.
pub(crate) fn maker() -> Tiny {
    let kind = |api_version: &str, kind: &str, plural: &str| {
        json!({"apiVersion": api_version,
        "kind": kind, "plural": plural, "scope": "Namespaced"})
    };
    let manifest = json!({"name": "maker", "version": "1.0.0",
        "primary": kind("example.com/v1", "Maker", "makers"),
        "owned": [{"kind": kind("v1", "ConfigMap", "configmaps")}]});
    let desired = json!({"objects": [{"object": config_map("made", "1")}]});
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string())
}

/// A primary of [`maker`].
pub(crate) fn primary() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Maker", "metadata": {"name": "one"},
        "spec": {}})
}
