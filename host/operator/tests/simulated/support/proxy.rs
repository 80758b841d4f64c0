//! A proxy between the operator and the simulator: it records each request, and a test may have it
//! delay, refuse or lose one.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use innkeeper_simulator::{Body, Simulator};
use serde_json::{Value, json};

/// Whatever a request can fail with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request of the operator.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The user that it impersonates; empty for the host itself.
    pub(crate) user: String,
    /// The HTTP method.
    pub(crate) method: String,
    /// The path without the query.
    pub(crate) path: String,
    /// The query.
    pub(crate) query: String,
    /// The content type.
    pub(crate) content: String,
    /// The body; null if there is none.
    pub(crate) body: Value,
}

impl Sent {
    /// Whether it asks for a change of the cluster; an Event is none, and a review neither.
    pub(crate) fn is_write(&self) -> bool {
        let is_other = ["/events", "authorization.k8s.io/"];
        self.method != "GET" && !is_other.iter().any(|part| self.path.contains(part))
    }

    /// Verb, plural and name, as in `apply configmaps/a` or `apply scripts/one/status`.
    pub(crate) fn line(&self) -> String {
        let verb = match (self.method.as_str(), self.content.as_str()) {
            ("PATCH", "application/apply-patch+yaml") => "apply".to_owned(),
            (method, _) => method.to_lowercase(),
        };
        let parts: Vec<&str> = self.path.split('/').skip(1).collect();
        let rest = match parts.iter().position(|part| *part == "namespaces") {
            Some(at) if parts.len() > at + 2 => &parts[at + 2..],
            _ if parts[0] == "api" => &parts[2..],
            _ => &parts[3.min(parts.len())..],
        };
        format!("{verb} {}", rest.join("/"))
    }
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The simulator answers it.
    Forward,
    /// The simulator answers it, and the answer arrives after this time.
    Delay(Duration),
    /// The proxy answers it with this status.
    Refuse(Value),
    /// The simulator carries it out, and the answer never arrives.
    Lose,
    /// The connection breaks, and the request reaches the simulator only after this time.
    Late(Duration),
}

/// A `Status` as the API server gives it with an error.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Reply {
    Reply::Refuse(json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message}))
}

type Handler = Box<dyn FnMut(&Sent) -> Reply + Send>;

#[derive(Default)]
struct State {
    sent: Vec<Sent>,
    handler: Option<Handler>,
}

/// The proxy. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Proxy {
    simulator: Simulator,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// A proxy of a simulator that forwards everything.
    pub(crate) fn new(simulator: Simulator) -> Self {
        Self { simulator, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `handler` decide about each request from here on. It may send requests to the simulator.
    pub(crate) fn intercept(&self, handler: impl FnMut(&Sent) -> Reply + Send + 'static) {
        self.state().handler = Some(Box::new(handler));
    }

    /// Forwards everything from here on.
    pub(crate) fn forward(&self) {
        self.state().handler = None;
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.state().sent)
    }
}

impl<B> tower::Service<http::Request<B>> for Proxy
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
        let proxy = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let header = |name: &str| {
                let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let sent = Sent {
                user: header("impersonate-user"),
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                content: header("content-type"),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let reply = {
                let mut state = proxy.state();
                state.sent.push(sent.clone());
                state.handler.as_mut().map_or(Reply::Forward, |handler| handler(&sent))
            };
            if let Reply::Refuse(status) = &reply {
                let code = u16::try_from(status["code"].as_u64().unwrap_or(500))?;
                let body = Either::Right(Full::from(status.to_string()));
                let response = http::Response::builder().status(code);
                return Ok(response.header("content-type", "application/json").body(body)?);
            }
            let request = http::Request::from_parts(parts, body);
            if let Reply::Late(time) = reply {
                let simulator = proxy.simulator.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    simulator.request(request);
                });
                return Err("the connection was reset".into());
            }
            let response = proxy.simulator.request(request);
            match reply {
                Reply::Delay(time) => tokio::time::sleep(time).await,
                Reply::Lose => return Err("the connection was reset".into()),
                Reply::Forward | Reply::Refuse(_) | Reply::Late(_) => {}
            }
            Ok(response.map(Either::Left))
        })
    }
}
