//! The pace of the watches of one cache, and the check whether versions (`resourceVersion`) went
//! back.
//!
//! The watcher of the kube client opens the next watch as soon as one ends, and lists again as soon
//! as a server answers 410. A server, or a proxy in front of it, that ends each watch at once would
//! so get requests without a pause. [`WatchPace`] lets a few through at once, and then one by one.
//!
//! After a backup of etcd was restored, versions can go back: see [`WatchPace::probe`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use tower::{BoxError, Service};

use crate::Env;
use crate::settings::{WATCH_BURST, WATCH_BURST_PERIOD, WATCH_END_TOLERANCE, WATCH_PROBE_TIMEOUT};
use crate::transport::{BoundedBody, Transport};

/// The largest answer to the question for the present version: one object. The API server limits
/// what it stores to 3 MiB; as JSON, with an indentation, it can be larger.
const PROBE_BYTES_MAX: usize = 8 << 20;

/// What the request of one object's metadata accepts, and what that of a list of them accepts. A
/// server answers a list with 406 if it was asked for the first.
const AS_METADATA: (&str, &str) = ("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;");

/// The pace of the lists and watches of one cache. Clones share it.
#[derive(Clone)]
pub(crate) struct WatchPace {
    env: Env,
    state: Arc<Mutex<State>>,
    /// Takes the version at which each watch begins.
    on_watch: Arc<dyn Fn(u64) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// When the last lists and watches began.
    begun: VecDeque<Instant>,
    /// The server may have started again with a backup since the last answer: the last watch
    /// failed, or did not end in time.
    may_have_restarted: bool,
}

/// What the server says of its present version.
enum Probe {
    /// It is not below that of the last event, or no number.
    Fine,
    /// It is below that of the last event.
    WentBack,
    /// The server refuses the question.
    Refused(Response<BoundedBody>),
}

/// The part of a list that has its version.
#[derive(Deserialize)]
struct ListHead {
    metadata: ListMetadata,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(default, rename = "resourceVersion")]
    resource_version: String,
}

impl WatchPace {
    /// `on_watch` gets the version at which each watch begins.
    pub(crate) fn new(env: &Env, on_watch: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { env: env.clone(), state: Arc::default(), on_watch: Arc::new(on_watch) }
    }

    /// A client whose lists and watches keep this pace.
    pub(crate) fn client(&self, inner: &Transport) -> kube::Client {
        kube::Client::new(Paced { inner: inner.clone(), pace: self.clone() }, "default")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more list or watch may begin.
    async fn turn(&self) {
        loop {
            let now = self.env.instant();
            let wait = {
                let mut state = self.lock();
                while state.begun.front().is_some_and(|at| now - *at >= WATCH_BURST_PERIOD) {
                    state.begun.pop_front();
                }
                match state.begun.front() {
                    Some(first) if state.begun.len() >= WATCH_BURST => {
                        WATCH_BURST_PERIOD.saturating_sub(now - *first)
                    }
                    _ => {
                        state.begun.push_back(now);
                        return;
                    }
                }
            };
            self.env.sleep(wait).await;
        }
    }

    async fn send(
        &self,
        transport: &Transport,
        request: Request<Body>,
    ) -> Result<Response<WatchedBody>, BoxError> {
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let is_read = request.method() == Method::GET;
        let is_watch = is_read && value("watch").is_some();
        // The next pages of a list are a part of it.
        if !is_watch && is_read && value("limit").is_some() && value("continue").is_none() {
            self.turn().await;
            self.lock().may_have_restarted = false;
        }
        if !is_watch {
            let response = transport.send(request).await?;
            return Ok(response.map(|body| WatchedBody { body, watch: None }));
        }
        self.turn().await;
        let since = value("resourceVersion").and_then(|version| version.parse().ok());
        let seconds = value("timeoutSeconds").and_then(|seconds| seconds.parse().ok());
        if let Some(since) = since
            && self.lock().may_have_restarted
        {
            match self.probe(transport, (request.uri(), request.headers()), since).await? {
                Probe::Fine => {}
                Probe::WentBack => {
                    tracing::warn!(
                        path = request.uri().path(),
                        "the version of the API server is below that of the last event, as after a restore of etcd: listing again"
                    );
                    return Ok(expired(since)?);
                }
                // The watch would be silent until the versions have passed that of the last event.
                Probe::Refused(response) => {
                    return Ok(response.map(|body| WatchedBody { body, watch: None }));
                }
            }
        }
        if let Some(since) = since {
            (self.on_watch)(since);
        }
        let begun = self.env.instant();
        let sent = transport.send(request).await;
        if !sent.as_ref().is_ok_and(|response| response.status().is_success()) {
            self.lock().may_have_restarted = true;
        }
        let whole = Duration::from_secs(seconds.unwrap_or_default());
        let watch = Some(OpenWatch { pace: self.clone(), until: begun + whole });
        Ok(sent?.map(|body| WatchedBody { body, watch }))
    }

    /// Compares the present version of the server with that of the last event. It is below if
    /// somebody restored an older backup of etcd without `--bump-revision`. A watch from the later
    /// version would get no event until the versions have passed it. The servers have to be
    /// restarted after a restore, so this follows a watch that failed or did not end in time.
    ///
    /// # Errors
    /// If there is no answer: the next watch asks again.
    async fn probe(
        &self,
        transport: &Transport,
        (uri, headers): (&Uri, &HeaderMap),
        since: u64,
    ) -> Result<Probe, BoxError> {
        let mut request = Request::get(format!("{}?limit=1", uri.path()));
        // A cache of metadata asks for no more here.
        if let Some(accept) = headers.get(header::ACCEPT) {
            let list = accept.to_str()?.replace(AS_METADATA.0, AS_METADATA.1);
            request = request.header(header::ACCEPT, list);
        }
        let request = request.body(Body::empty())?;
        let answer = self.env.timeout(WATCH_PROBE_TIMEOUT, async {
            let response = transport.send(request).await?;
            if !response.status().is_success() {
                return Ok(Err(response));
            }
            let body = http_body_util::Limited::new(response.into_body(), PROBE_BYTES_MAX);
            let head: ListHead = serde_json::from_slice(&body.collect().await?.to_bytes())?;
            Ok::<_, BoxError>(Ok(head.metadata.resource_version))
        });
        let Ok(answer) = answer.await else {
            return Err("the API server does not answer a list of one object".into());
        };
        let version = match answer? {
            Ok(version) => version,
            Err(response) => return Ok(Probe::Refused(response)),
        };
        self.lock().may_have_restarted = false;
        let is_below = version.parse::<u64>().is_ok_and(|version| version < since);
        Ok(if is_below { Probe::WentBack } else { Probe::Fine })
    }
}

/// The answer of a server that does not have a version any more: the cache lists again.
fn expired(since: u64) -> Result<Response<WatchedBody>, http::Error> {
    let message = format!("resource version {since} is in the future");
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "reason": "Expired", "code": 410, "message": message});
    let body = WatchedBody { body: BoundedBody::from(status.to_string()), watch: None };
    Response::builder()
        .status(StatusCode::GONE)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
}

/// A client with a pace, as a service.
struct Paced {
    inner: Transport,
    pace: WatchPace,
}

impl Service<Request<Body>> for Paced {
    type Response = Response<WatchedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (pace, transport) = (self.pace.clone(), self.inner.clone());
        async move { pace.send(&transport, request).await }.boxed()
    }
}

/// A watch that the server has not ended.
struct OpenWatch {
    pace: WatchPace,
    /// When it has to end.
    until: Instant,
}

/// The body of an answer. It notes the early end of a watch.
struct WatchedBody {
    body: BoundedBody,
    watch: Option<OpenWatch>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !matches!(frame, Some(Ok(_)))
            && let Some(OpenWatch { pace, until }) = self.watch.take()
        {
            let is_error = frame.is_some();
            let now = pace.env.instant();
            let is_in_time =
                now + WATCH_END_TOLERANCE >= until && now <= until + WATCH_END_TOLERANCE;
            if is_error || !is_in_time {
                pace.lock().may_have_restarted = true;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.watch.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
