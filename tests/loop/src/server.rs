//! The scripted server's HTTP side, and its script.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::{BoxError, Service};

use crate::store::{Place, Refused, Store, Watcher, event_line};

/// What the server answers.
type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// What goes wrong, by counting writes: no randomness but the host's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Every so many writes one is answered 503 and not done; 0 for never.
    pub unavailable_every: u64,
    /// Every so many writes one is done and its answer lost; 0 for never.
    pub lost_every: u64,
}

struct Inner {
    store: Store,
    log: Vec<String>,
    writes: u64,
    faults: Faults,
}

/// A scripted API server. Clones are the same server.
#[derive(Clone)]
pub struct Scripted {
    inner: Arc<Mutex<Inner>>,
    /// Plurals and kinds that are served, by group and version as in URLs (`api/v1`).
    served: Arc<BTreeMap<String, Vec<(String, String)>>>,
}

impl Scripted {
    /// A server of these kinds, each as (`apis/apps/v1`, `deployments`, `Deployment`).
    pub fn new(served: &[(&str, &str, &str)], faults: Faults) -> Self {
        let mut map: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (group, plural, kind) in served {
            map.entry((*group).to_owned())
                .or_default()
                .push(((*plural).to_owned(), (*kind).to_owned()));
        }
        let inner = Inner { store: Store::default(), log: Vec::new(), writes: 0, faults };
        Self { inner: Arc::new(Mutex::new(inner)), served: Arc::new(map) }
    }

    /// Puts an object there, or replaces it, as somebody else.
    pub fn put(&self, group: &str, plural: &str, object: Value) {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let place = Place {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: text("namespace"),
            name: text("name"),
        };
        let mut inner = self.lock();
        let known = inner.store.objects.get(&place).cloned();
        let mut object = object;
        let event = if let Some(known) = &known {
            object["metadata"]["uid"] = known["metadata"]["uid"].clone();
            object["metadata"]["generation"] =
                (known["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
            "MODIFIED"
        } else {
            object["metadata"]["uid"] = format!("uid-{}-{}", place.plural, place.name).into();
            object["metadata"]["generation"] = 1.into();
            "ADDED"
        };
        inner.store.put(&place, object, event);
    }

    /// Takes an object away, as somebody else.
    pub fn delete(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let place = Place {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.lock().store.delete(&place);
    }

    /// The objects of a collection, in order.
    pub fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        self.lock().store.list(group, plural, "").into_iter().cloned().collect()
    }

    /// Every request so far, a line each: method, path and query, user, body.
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self, request: Request<Body>) -> Result<Answer, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = parts.uri.path().trim_start_matches('/').to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let user = parts
            .headers
            .get("impersonate-user")
            .and_then(|user| user.to_str().ok())
            .unwrap_or("-")
            .to_owned();
        self.lock().log.push(format!(
            "{} {path}?{query} {user} {}",
            parts.method,
            String::from_utf8_lossy(&body)
        ));
        let Some(target) = self.target(&path) else {
            return Ok(status(404, "NotFound", "the server could not find the requested resource"));
        };
        let is_write = parts.method != Method::GET && !path.contains("authorization.k8s.io");
        let mut lost = false;
        if is_write {
            let mut inner = self.lock();
            inner.writes += 1;
            let due = |every: u64| every != 0 && inner.writes.is_multiple_of(every);
            if due(inner.faults.unavailable_every) {
                return Ok(status(503, "ServiceUnavailable", "scripted"));
            }
            lost = due(inner.faults.lost_every);
        }
        let response = match (parts.method.as_str(), target) {
            ("GET", Target::Discovery(group)) => self.discover(&group),
            ("GET", Target::Collection(place)) if query.contains("watch=true") => {
                return Ok(self.watch(&place, &query));
            }
            ("GET", Target::Collection(place)) => self.collection(&place),
            ("GET", Target::Object(place, _)) => match self.lock().store.objects.get(&place) {
                Some(object) => json(200, object),
                None => status(
                    404,
                    "NotFound",
                    &format!("{} \"{}\" not found", place.plural, place.name),
                ),
            },
            ("PATCH", Target::Object(place, subresource)) => {
                let manager = parameter(&query, "fieldManager").replace("%2F", "/");
                let body = serde_json::from_slice(&body)?;
                applied(self.lock().store.apply(&place, &manager, &subresource, body))
            }
            ("DELETE", Target::Object(place, _)) => match self.lock().store.delete(&place) {
                Some(_) => json(200, &json!({"kind": "Status", "status": "Success"})),
                None => status(404, "NotFound", "not found"),
            },
            ("POST", Target::Collection(_)) => {
                let mut body: Value = serde_json::from_slice(&body)?;
                body["status"] = json!({"allowed": true});
                json(201, &body)
            }
            _ => status(405, "MethodNotAllowed", "not scripted"),
        };
        if lost {
            return Err("scripted: the connection broke after the write".into());
        }
        Ok(response)
    }

    fn target(&self, path: &str) -> Option<Target> {
        let parts: Vec<&str> = path.split('/').collect();
        let depth = if parts.first() == Some(&"api") { 2 } else { 3 };
        let group = parts.get(..depth)?.join("/");
        let rest = &parts[depth..];
        if group.ends_with("authorization.k8s.io/v1") || group.ends_with("events.k8s.io/v1") {
            let plural = (*rest.last()?).to_owned();
            return Some(Target::Collection(Place {
                group,
                plural,
                namespace: String::new(),
                name: String::new(),
            }));
        }
        let kinds = self.served.get(&group)?;
        let (namespace, rest) = match rest {
            [] => return Some(Target::Discovery(group)),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let plural = (*rest.first()?).to_owned();
        if !kinds.iter().any(|(served, _)| *served == plural) {
            return None;
        }
        let name = rest.get(1).copied().unwrap_or_default().to_owned();
        let place = Place { group, plural, namespace: namespace.to_owned(), name };
        Some(if place.name.is_empty() {
            Target::Collection(place)
        } else {
            Target::Object(place, rest.get(2).copied().unwrap_or_default().to_owned())
        })
    }

    fn discover(&self, group: &str) -> Answer {
        let kinds = self.served.get(group).map_or(&[][..], Vec::as_slice);
        // The host alone reads the one kind without a namespace.
        let resource = |(plural, kind): &(String, String)| json!({"name": plural, "kind": kind, "namespaced": kind != "CustomResourceDefinition"});
        let resources: Vec<Value> = kinds.iter().map(resource).collect();
        json(200, &json!({"kind": "APIResourceList", "resources": resources}))
    }

    fn collection(&self, place: &Place) -> Answer {
        let inner = self.lock();
        let items = inner.store.list(&place.group, &place.plural, &place.namespace);
        let version = inner.store.version.max(1).to_string();
        json(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items}),
        )
    }

    /// A watch from now on: the scripted server lists and watches without a gap in between,
    /// since nothing else runs while it answers.
    fn watch(&self, place: &Place, query: &str) -> Answer {
        let (events, received) = mpsc::unbounded_channel();
        let mut inner = self.lock();
        // What happened since the version that is asked for.
        let since: u64 = parameter(query, "resourceVersion").parse().unwrap_or(0);
        for object in inner.store.list(&place.group, &place.plural, &place.namespace) {
            let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if version.parse::<u64>().unwrap_or(0) > since {
                let _ = events.send(event_line("MODIFIED", object));
            }
        }
        inner.store.watchers.push(Watcher {
            group: place.group.clone(),
            plural: place.plural.clone(),
            namespace: place.namespace.clone(),
            events,
        });
        drop(inner);
        let seconds: u64 = parameter(query, "timeoutSeconds").parse().unwrap_or(290);
        let end = Box::pin(tokio::time::sleep(Duration::from_secs(seconds)));
        let lines = stream::unfold(received, |mut received| async move {
            received.recv().await.map(|line| (line, received))
        })
        .take_until(end)
        .map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line))));
        Response::new(StreamBody::new(lines).boxed_unsync())
    }
}

impl Service<Request<Body>> for Scripted {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

enum Target {
    Discovery(String),
    Collection(Place),
    Object(Place, String),
}

fn parameter(query: &str, name: &str) -> String {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default()
}

fn applied(result: Result<(Value, bool), Refused>) -> Answer {
    match result {
        Ok((object, created)) => json(if created { 201 } else { 200 }, &object),
        Err((code, reason, message)) => status(code, reason, &message),
    }
}

fn json(code: u16, value: &Value) -> Answer {
    let mut response = Response::new(Full::from(value.to_string()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response
}

fn status(code: u16, reason: &str, message: &str) -> Answer {
    json(
        code,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason, "message": message}),
    )
}
