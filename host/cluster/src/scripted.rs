//! A scripted API server for tests: it answers by rule, and logs each request with its time.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::BoxError;

use crate::{Account, ApiClient, Cluster, Env, SecretDigestKey, Settings};

type ReplyBody = UnsyncBoxBody<Bytes, BoxError>;

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Json(u16, Value),
    Text(u16, &'static str),
    /// With `Retry-After`.
    Busy(u16, u64),
    /// After so many seconds.
    Slow(u64, Box<Reply>),
    /// Never.
    Hang,
    /// The connection is refused.
    Refused,
    /// The connection breaks before the answer.
    Broken,
}

/// An open watch. The drop ends it as a server does.
pub(crate) struct Watch {
    lines: mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>,
}

impl Watch {
    pub(crate) fn send(&self, event: &str, object: &Value) {
        let line = format!("{{\"type\":\"{event}\",\"object\":{object}}}\n");
        let _ = self.lines.send(Ok(Frame::data(line.into())));
    }
}

#[derive(Default)]
struct State {
    always: BTreeMap<String, Reply>,
    once: BTreeMap<String, VecDeque<Reply>>,
    log: Vec<String>,
    accepts: Vec<String>,
    watches: BTreeMap<String, VecDeque<Watch>>,
}

#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    start: Instant,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), start: Instant::now() }
    }

    pub(crate) fn env() -> Env {
        Env::scripted(7, "2026-01-01T00:00:00Z".parse().unwrap())
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let service = {
            let server = self.clone();
            tower::service_fn(move |request| server.clone().serve(request))
        };
        Cluster::over(service, Self::env(), Settings::default(), SecretDigestKey::new(b"k"))
    }

    pub(crate) fn client(&self, account: &str) -> ApiClient {
        self.cluster().as_account(&Account::new("m", account))
    }

    /// Sets the response to `METHOD path`, or to `user METHOD path` of one account; to its access
    /// reviews of one verb with `user REVIEW verb`.
    pub(crate) fn always(&self, ask: &str, reply: Reply) {
        self.state.lock().unwrap().always.insert(ask.into(), reply);
    }

    /// Adds a response that the server gives once before that; several come in order.
    pub(crate) fn once(&self, ask: &str, reply: Reply) {
        self.state.lock().unwrap().once.entry(ask.into()).or_default().push_back(reply);
    }

    /// `seconds user METHOD path?query` of all requests so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    /// The `Accept` header of each request so far.
    pub(crate) fn accepts(&self) -> Vec<String> {
        self.state.lock().unwrap().accepts.clone()
    }

    pub(crate) fn count(&self, part: &str) -> usize {
        self.log().iter().filter(|line| line.contains(part)).count()
    }

    /// The next watch that is opened, or was and has not been taken yet.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let mut found = None;
        let taken = || {
            found = self.state.lock().unwrap().watches.get_mut(path).and_then(VecDeque::pop_front);
            found.is_some()
        };
        eventually("a watch is opened", taken).await;
        found.unwrap()
    }

    /// The answer of discovery unless a rule has another one: the kinds of most tests, not logged.
    fn discovery(&self, ask: &str) -> Option<Value> {
        let state = self.state.lock().unwrap();
        if state.always.contains_key(ask) || state.once.contains_key(ask) {
            return None;
        }
        let resources = match ask {
            "GET /api/v1" => resources(&[
                ("configmaps", "ConfigMap", true),
                ("secrets", "Secret", true),
                ("services", "Service", true),
                ("namespaces", "Namespace", false),
                ("nodes", "Node", false),
            ]),
            "GET /apis/apps/v1" => resources(&[("deployments", "Deployment", true)]),
            "GET /apis/events.k8s.io/v1" => resources(&[("events", "Event", true)]),
            "GET /apis/apiextensions.k8s.io/v1" => {
                resources(&[("customresourcedefinitions", "CustomResourceDefinition", false)])
            }
            _ => return None,
        };
        Some(resources)
    }

    pub(crate) async fn serve(
        self,
        request: Request<Body>,
    ) -> Result<Response<ReplyBody>, BoxError> {
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let is_review = request.uri().path().ends_with("accessreviews");
        let review: Value = if is_review {
            serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default()
        } else {
            Value::Null
        };
        let user = request
            .headers()
            .get("Impersonate-User")
            .map_or("host", |user| user.to_str().unwrap().rsplit(':').next().unwrap());
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let ask = format!("{} {path}", request.method());
        let named = format!("{user} {ask}");
        if let Some(document) = self.discovery(&ask) {
            return Ok(respond(200, None, document.to_string()));
        }
        let reply = {
            let mut state = self.state.lock().unwrap();
            let seconds = self.start.elapsed().as_secs_f64();
            let line = format!("{seconds:.1} {named}?{query}");
            let accept = request.headers().get("Accept").map(|accept| accept.to_str().unwrap());
            state.accepts.push(accept.unwrap_or_default().to_owned());
            state.log.push(line.trim_end_matches('?').to_owned());
            let watch = query.contains("watch=true");
            let verb = review["spec"]["resourceAttributes"]["verb"].as_str().unwrap_or_default();
            let review = format!("{user} REVIEW {verb}");
            let asks = if watch {
                vec![format!("{user} WATCH {path}"), format!("WATCH {path}")]
            } else {
                vec![review, named, ask]
            };
            let once =
                asks.iter().find_map(|ask| state.once.get_mut(ask).and_then(VecDeque::pop_front));
            let reply = once.or_else(|| asks.iter().find_map(|ask| state.always.get(ask).cloned()));
            if watch && reply.is_none() {
                let (lines, mut open) = mpsc::unbounded_channel();
                state.watches.entry(path.into()).or_default().push_back(Watch { lines });
                let stream = futures::stream::poll_fn(move |cx| open.poll_recv(cx));
                return Ok(Response::new(StreamBody::new(stream).boxed_unsync()));
            }
            reply.unwrap_or(Reply::Text(404, "404 page not found"))
        };
        let mut reply = reply;
        while let Reply::Slow(seconds, next) = reply {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            reply = *next;
        }
        let response = match reply {
            Reply::Json(code, body) => respond(code, None, body.to_string()),
            Reply::Text(code, body) => respond(code, None, body.into()),
            Reply::Busy(code, seconds) => {
                respond(code, Some(seconds), status(code, "Busy", "busy", &json!({})).to_string())
            }
            Reply::Hang | Reply::Slow(..) => std::future::pending().await,
            Reply::Refused => {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
            }
            Reply::Broken => return Err("connection closed before message completed".into()),
        };
        Ok(response)
    }
}

fn respond(code: u16, retry_after: Option<u64>, body: String) -> Response<ReplyBody> {
    let mut response = Response::builder().status(code);
    if let Some(seconds) = retry_after {
        response = response.header("Retry-After", seconds);
    }
    let body = Full::new(Bytes::from(body)).map_err(|never: Infallible| match never {});
    response.body(body.boxed_unsync()).unwrap()
}

/// A document of discovery: plural, kind and whether it is namespaced.
pub(crate) fn resources(all: &[(&str, &str, bool)]) -> Value {
    let resources: Vec<Value> = all
        .iter()
        .map(|(name, kind, namespaced)| {
            json!({ "name": name, "kind": kind, "namespaced": namespaced })
        })
        .collect();
    json!({ "kind": "APIResourceList", "resources": resources })
}

pub(crate) fn status(code: u16, reason: &str, message: &str, details: &Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code,
    })
}

pub(crate) fn list(version: u64, items: &[Value]) -> Reply {
    let version = version.to_string();
    Reply::Json(
        200,
        json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": version }, "items": items }),
    )
}

pub(crate) fn forbidden() -> Reply {
    Reply::Json(403, status(403, "Forbidden", "no", &json!({ "kind": "configmaps" })))
}

pub(crate) fn allowed(allowed: bool) -> Reply {
    Reply::Json(201, json!({ "status": { "allowed": allowed } }))
}

/// Waits, on virtual time, until something holds; at most ten minutes of it.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_mins(10), async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "it never came that {what}");
}
