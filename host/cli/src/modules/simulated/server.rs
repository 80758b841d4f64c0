//! A simulated API server with one Module, `shop`, two revisions of it and their snapshots.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http_body_util::{BodyExt as _, Either, Full};
use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_lab::{Api, Content};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{APPROVE_ANNOTATION, NAMESPACE, REJECT_ANNOTATION};
use innkeeper_modules::{Component, Digest, chunks};
use innkeeper_simulator::{Body, Controllers, Simulator};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

/// The name of the Module.
pub(crate) const MODULE: &str = "shop";
/// The path of the Module.
pub(crate) const PATH: &str = "/apis/innkeeper.dev/v1alpha1/modules/shop";
/// How often the test reads what it waits for.
const POLL: Duration = Duration::from_millis(100);
/// How long it waits at most, in virtual time.
const LIMIT: Duration = Duration::from_mins(5);

/// Whatever a request can fail with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request of the command.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The HTTP method.
    pub(crate) method: String,
    /// The query.
    pub(crate) query: String,
    /// The body; null if there is none.
    pub(crate) body: Value,
}

impl Sent {
    /// Whether it changes the source of the Module, also by a dry run.
    pub(crate) fn is_of_source(&self) -> bool {
        self.method == "PATCH" && !self.body["spec"]["source"].is_null()
    }

    /// Whether the API server only says what it would do.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.contains("dryRun=All")
    }

    /// The approval and the rejection that it writes.
    pub(crate) fn decision(&self) -> Option<[&str; 2]> {
        let annotations = &self.body["metadata"]["annotations"];
        Some([annotations[APPROVE_ANNOTATION].as_str()?, annotations[REJECT_ANNOTATION].as_str()?])
    }
}

type Refuses = Arc<Mutex<Box<dyn FnMut(&Sent) -> bool + Send>>>;

/// The server.
pub(crate) struct Server {
    simulator: Simulator,
    sent: Arc<Mutex<Vec<Sent>>>,
    refuses: Refuses,
    /// The component that was active before.
    pub(crate) earlier: Component,
    /// The active component.
    pub(crate) active: Component,
}

/// The component with these bytes.
fn component(bytes: &[u8]) -> Component {
    Component { bytes: bytes.into(), digest: Digest::of(bytes) }
}

/// The objects of a file.
fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_yaml_ng::Deserializer::from_str(yaml);
    documents.map(|document| Value::deserialize(document).unwrap()).collect()
}

impl Server {
    /// A server with the Module, whose last change the host has observed.
    pub(crate) async fn start() -> Self {
        let simulator = Simulator::with(7, jiff::Timestamp::UNIX_EPOCH, Controllers::all());
        let (earlier, active) = (component(b"\0asm one"), component(b"\0asm two"));
        let server = Self {
            simulator,
            sent: Arc::default(),
            refuses: Arc::new(Mutex::new(Box::new(|_| false))),
            earlier,
            active,
        };
        server.apply(&innkeeper_modules::crd()).await;
        server
            .apply(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            )
            .await;
        for component in [&server.earlier, &server.active] {
            let name = snapshot_name(MODULE, component.digest);
            for body in chunks::config_maps(&name, component, &Map::new()) {
                server.apply(&body).await;
            }
        }
        server
            .apply(&json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": MODULE},
                "spec": {"source": {"configMap": {"name": "shop-2"}}, "serviceAccountName": "team-a"}}))
            .await;
        let earlier = json!({"digest": server.earlier.digest.to_string(),
            "configMap": snapshot_name(MODULE, server.earlier.digest)});
        let digest = server.active.digest.to_string();
        let status = json!({"digest": digest, "previous": earlier, "history": [earlier]});
        server.observe(&status).await;
        server
    }

    /// The command as this user, a member of these groups; as an administrator without a name.
    pub(crate) fn connect(&self, user: &str, groups: &[&str]) -> Cluster {
        let connection = Connection {
            simulator: self.simulator.clone(),
            sent: self.sent.clone(),
            refuses: self.refuses.clone(),
            user: user.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        };
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        Cluster::over(connection, env, Settings::default(), SecretDigestKey::new(&[]))
    }

    /// Refuses the requests for which this holds, from now on.
    pub(crate) fn refuse(&self, refuses: impl FnMut(&Sent) -> bool + Send + 'static) {
        *self.refuses.lock().unwrap() = Box::new(refuses);
    }

    /// The requests of the command since the last call.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }

    fn api(&self) -> Api {
        Api::simulated(self.simulator.clone())
    }

    /// Applies an object as an administrator.
    pub(crate) async fn apply(&self, object: &Value) {
        self.api().apply(object, NAMESPACE).await.unwrap();
    }

    /// Applies the objects of a file as an administrator.
    pub(crate) async fn apply_all(&self, yaml: &str) {
        for object in objects(yaml) {
            self.apply(&object).await;
        }
    }

    /// Replaces a ConfigMap that cannot be changed.
    pub(crate) async fn replace_config_map(&self, name: &str, object: &Value) {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}");
        self.api().delete(&path).await.unwrap();
        self.apply(object).await;
    }

    /// The Module.
    pub(crate) async fn module(&self) -> Value {
        self.api().get(PATH).await.unwrap().unwrap()
    }

    /// The approval and the rejection in the annotations of the Module; each empty for none.
    pub(crate) async fn decisions(&self) -> [String; 2] {
        let annotations = self.module().await["metadata"]["annotations"].clone();
        [APPROVE_ANNOTATION, REJECT_ANNOTATION]
            .map(|name| annotations[name].as_str().unwrap_or_default().to_owned())
    }

    /// Merges this into the status of the Module, and its generation, as a host that has observed
    /// the Module.
    pub(crate) async fn observe(&self, status: &Value) {
        let mut status = status.clone();
        status["observedGeneration"] = self.module().await["metadata"]["generation"].clone();
        let (path, body) = (format!("{PATH}/status"), json!({ "status": status }));
        self.api().send("PATCH", &path, Content::MergePatch, &body).await.unwrap();
    }

    /// Does the same as soon as this holds of the Module.
    pub(crate) async fn observe_when(&self, holds: impl Fn(&Value) -> bool, status: &Value) {
        let observed = tokio::time::timeout(LIMIT, async {
            while !holds(&self.module().await) {
                tokio::time::sleep(POLL).await;
            }
        });
        assert!(observed.await.is_ok(), "the Module never is so: {:#}", self.module().await);
        self.observe(status).await;
    }
}

/// The connection of a user.
#[derive(Clone)]
struct Connection {
    simulator: Simulator,
    sent: Arc<Mutex<Vec<Sent>>>,
    refuses: Refuses,
    user: String,
    groups: Vec<String>,
}

impl Connection {
    async fn answer(
        &self,
        mut parts: Parts,
        body: Bytes,
    ) -> http::Response<Either<Body, Full<Bytes>>> {
        let one = Sent {
            method: parts.method.to_string(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let is_refused = self.refuses.lock().unwrap()(&one);
        let is_of_source = one.is_of_source();
        self.sent.lock().unwrap().push(one);
        if is_refused {
            return refusal("the test refuses it");
        }
        if is_of_source && !self.may_impersonate().await {
            return refusal("the user may not impersonate ServiceAccount innkeeper-modules/team-a");
        }
        if !self.user.is_empty() {
            parts.headers.insert("impersonate-user", self.user.parse().unwrap());
            for group in &self.groups {
                parts.headers.append("impersonate-group", group.parse().unwrap());
            }
        }
        self.simulator.request(http::Request::from_parts(parts, body)).map(Either::Left)
    }

    /// What the policy of deploy/base asks about a user who changes a source; the simulator does
    /// not evaluate `authorizer`.
    async fn may_impersonate(&self) -> bool {
        if self.user.is_empty() {
            return true;
        }
        let attributes = json!({"verb": "impersonate", "resource": "serviceaccounts",
            "namespace": NAMESPACE, "name": "team-a"});
        let spec =
            json!({"user": self.user, "groups": self.groups, "resourceAttributes": attributes});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": spec});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let api = Api::simulated(self.simulator.clone());
        let review = api.send("POST", path, Content::Json, &review).await.unwrap();
        review["status"]["allowed"] == true
    }
}

fn refusal(message: &str) -> http::Response<Either<Body, Full<Bytes>>> {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": message});
    let response = http::Response::builder().status(403).header("content-type", "application/json");
    response.body(Either::Right(Full::from(status.to_string()))).unwrap()
}

impl<B> tower::Service<http::Request<B>> for Connection
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<Either<Body, Full<Bytes>>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let connection = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok(connection.answer(parts, body).await)
        })
    }
}
