//! A simulated API server with a primary, `Site default/web`, and revisions as the host stores
//! them.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use innkeeper_cluster::{ApiClient, Cluster, Env, SecretDigestKey, Settings};
use innkeeper_core::primary_revision::{
    REVISION_API_VERSION_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION,
};
use innkeeper_lab::{Api, Content};
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

use super::PrimaryName;

/// The path of the primary.
const PATH: &str = "/apis/example.com/v1/namespaces/default/sites/web";

/// The name of the primary, as a user gives it.
pub(crate) const WEB: PrimaryName<'static> =
    PrimaryName { kind: "site", namespace: "default", name: "web" };

/// The server.
pub(crate) struct Server {
    simulator: Simulator,
    /// The uid of the primary.
    pub(crate) uid: String,
}

impl Server {
    /// A server whose primary has this spec. Its schema allows at most 5 for `spec.size`.
    pub(crate) async fn start(spec: &Value) -> Self {
        // The garbage collector would delete revisions whose primary does not exist.
        let controllers = Controllers { garbage_collector: false, ..Controllers::default() };
        let simulator = Simulator::with(7, jiff::Timestamp::UNIX_EPOCH, controllers);
        let mut server = Self { simulator, uid: String::new() };
        server.apply(&definition("example.com")).await;
        server.apply(&site("example.com", spec)).await;
        server.uid = server.primary().await["metadata"]["uid"].as_str().unwrap().to_owned();
        server
    }

    /// A client of the user of a kubeconfig.
    pub(crate) fn client(&self) -> ApiClient {
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        let (settings, key) = (Settings::default(), SecretDigestKey::new(&[]));
        Cluster::over(self.simulator.clone(), env, settings, key).host()
    }

    /// The same, of a server that also stores these ControllerRevisions, as JSON texts.
    pub(crate) fn client_with(&self, foreign: &[&str]) -> ApiClient {
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        let (settings, key) = (Settings::default(), SecretDigestKey::new(&[]));
        let server = WithForeign {
            simulator: self.simulator.clone(),
            foreign: foreign.iter().flat_map(|text| [*text, ","]).collect(),
        };
        Cluster::over(server, env, settings, key).host()
    }

    fn api(&self) -> Api {
        Api::simulated(self.simulator.clone())
    }

    async fn apply(&self, object: &Value) {
        self.api().apply(object, "default").await.unwrap();
    }

    /// The primary.
    pub(crate) async fn primary(&self) -> Value {
        self.api().get(PATH).await.unwrap().unwrap()
    }

    /// Makes the primary one with another uid.
    pub(crate) async fn replace_primary(&self, spec: &Value) {
        self.api().delete(PATH).await.unwrap();
        self.apply(&site("example.com", spec)).await;
    }

    /// Adds a primary of another group with the same kind and name, and a revision of it.
    pub(crate) async fn add_primary_of_other_group(&self, spec: &Value) {
        self.apply(&definition("example.org")).await;
        self.apply(&site("example.org", spec)).await;
        let data = json!({ "spec": spec });
        self.store_as("web-of-org", ("example.org/v1", "1"), 1, "spec", &data).await;
    }

    /// Merges a patch into the primary as `manager`.
    pub(crate) async fn merge(&self, manager: &str, change: &Value) {
        let path = format!("{PATH}?fieldManager={manager}");
        self.api().send("PATCH", &path, Content::MergePatch, change).await.unwrap();
    }

    /// Stores a revision of the primary.
    pub(crate) async fn store(&self, number: i64, field_paths: &str, data: &Value) {
        let name = format!("web-{number}");
        self.store_as(&name, ("example.com/v1", &self.uid), number, field_paths, data).await;
    }

    /// Stores a revision of the primary with fields of an API version, as the host records it.
    pub(crate) async fn store_in_version(&self, api_version: &str, number: i64, spec: &Value) {
        self.store(number, "spec", &json!({ "spec": spec })).await;
        let path = format!("/apis/apps/v1/namespaces/default/controllerrevisions/web-{number}");
        let change =
            json!({"metadata": {"annotations": {REVISION_API_VERSION_ANNOTATION: api_version}}});
        self.api().send("PATCH", &path, Content::MergePatch, &change).await.unwrap();
    }

    /// Stores a revision under a name, of the controller with this API version and uid.
    pub(crate) async fn store_as(
        &self,
        name: &str,
        (api_version, uid): (&str, &str),
        number: i64,
        field_paths: &str,
        data: &Value,
    ) {
        let owner = json!({"apiVersion": api_version, "kind": "Site", "name": "web", "uid": uid,
            "controller": true, "blockOwnerDeletion": true});
        self.apply(&json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": name, "annotations": {REVISION_FIELD_PATHS_ANNOTATION: field_paths},
                "ownerReferences": [owner]},
            "revision": number, "data": data}))
            .await;
    }

    /// Gives a ControllerRevision of the primary without the annotation of the host.
    pub(crate) async fn store_without_annotation(&self, number: i64) {
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Site", "name": "web",
            "uid": self.uid, "controller": true});
        self.apply(&json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": "other", "ownerReferences": [owner]},
            "revision": number, "data": {"spec": {}}}))
            .await;
    }
}

/// A simulator whose lists of ControllerRevisions begin with objects that it does not accept.
struct WithForeign {
    simulator: Simulator,
    /// The objects, each with a comma behind it.
    foreign: String,
}

impl<B> tower::Service<http::Request<B>> for WithForeign
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<tower::BoxError>,
{
    type Response = http::Response<Full<Bytes>>;
    type Error = tower::BoxError;
    type Future =
        Pin<Box<dyn Future<Output = Result<http::Response<Full<Bytes>>, tower::BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let is_list = request.uri().path().ends_with("/controllerrevisions");
        let foreign = if is_list { self.foreign.clone() } else { String::new() };
        let answer = self.simulator.call(request);
        Box::pin(async move {
            let (head, body) = answer.await?.into_parts();
            let text = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
            let text = text.replacen("\"items\":[", &format!("\"items\":[{foreign}"), 1);
            Ok(http::Response::from_parts(head, Full::new(Bytes::from(text))))
        })
    }
}

fn site(group: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Site", "metadata": {"name": "web"},
        "spec": spec})
}

fn definition(group: &str) -> Value {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"size": {"type": "integer", "maximum": 5}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("sites.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites", "singular": "site",
                "listKind": "SiteList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}})
}
