//! A plain-HTTP proxy between host and API server that does harm on request.

mod fault;
mod target;
mod watch;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::stream;
use http::{HeaderName, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use innkeeper_controlplane::Kubeconfig;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

pub use fault::{Fault, Matching, When};
pub use target::Target;
use watch::{Cut, Held, OpenWatch};

/// Headers that belong to one connection, not to the request.
const HOP_BY_HOP: [HeaderName; 5] =
    [header::CONNECTION, header::HOST, header::TE, header::TRANSFER_ENCODING, header::UPGRADE];

type Answer = Response<BoxBody<Bytes, Cut>>;
type Callback = Box<dyn FnOnce() + Send>;

/// A plain-HTTP proxy on 127.0.0.1 in front of an API server. It authenticates upstream
/// with the credentials of a kubeconfig, passes `Impersonate-*` headers through, and has a
/// kubeconfig of its own that points to it.
///
/// Give it a runtime that lives as long as it does. It ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    folder: TempDir,
    shared: Arc<Shared>,
    server: Option<tokio::task::JoinHandle<()>>,
}

/// One request that came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// When it came, after the start of the proxy.
    pub at: Duration,
    /// As in `PATCH`.
    pub method: String,
    /// Path and query.
    pub uri: String,
    /// What the path names.
    pub target: Target,
    /// Whether it is a watch.
    pub watch: bool,
    /// The `Impersonate-User` header.
    pub impersonated: Option<String>,
    /// HTTP status of the answer; 0 while there is none, or if it was lost on purpose.
    pub code: u16,
}

impl ProxiedRequest {
    /// Whether it is a POST, PUT, PATCH or DELETE. Reviews of rights are none: they change
    /// nothing.
    pub fn is_write(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH" | "DELETE")
            && !self.target.group.starts_with("authorization.k8s.io")
    }
}

struct Shared {
    upstream: kube::Client,
    started: Instant,
    held: signal::Sender<Held>,
    /// Raised by each call of `let_go`.
    gate: signal::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: Vec<ProxiedRequest>,
    writes: u64,
    rules: Vec<Rule>,
    callbacks: BTreeMap<u64, (When, Callback)>,
    watches: Vec<Arc<OpenWatch>>,
    delayed: usize,
}

struct Rule {
    matching: Matching,
    fault: Fault,
    left: u32,
}

impl Proxy {
    /// Starts a proxy in front of the API server of `kubeconfig`, with its credentials.
    ///
    /// # Errors
    /// If the kubeconfig cannot be used, or no port is free.
    pub async fn start(kubeconfig: &Path) -> Result<Self> {
        let upstream = crate::admin::client(kubeconfig).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let folder = tempfile::Builder::new().prefix("innkeeper-proxy-").tempdir()?;
        Kubeconfig::new(&format!("http://{address}"), None)
            .write(&folder.path().join("kubeconfig"))?;
        let shared = Arc::new(Shared {
            upstream,
            started: Instant::now(),
            held: signal::Sender::new(Held::new()),
            gate: signal::Sender::new(0),
            state: Mutex::default(),
        });
        let server = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, folder, shared, server: Some(server) })
    }

    /// Path of the kubeconfig that points here.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Writes a kubeconfig to another path that points to the proxy, for instance one that is
    /// rewritten.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        fs::copy(self.kubeconfig(), path).with_context(|| path.display().to_string())?;
        Ok(())
    }

    /// Holds back the events of all watches of the resource (as in `deployments`), those
    /// opened later included, until [`Self::release`]. Lists and GETs pass.
    pub fn hold(&self, resource: &str) {
        self.shared.held.send_modify(|held| {
            held.insert(resource.to_owned());
        });
    }

    /// Lets them go, in order.
    pub fn release(&self, resource: &str) {
        self.shared.held.send_modify(|held| {
            held.remove(resource);
        });
    }

    /// Number of events of the resource that are held back now, bookmarks included.
    pub fn held(&self, resource: &str) -> usize {
        use std::sync::atomic::Ordering::SeqCst;
        self.open(resource).iter().map(|watch| watch.waiting.load(SeqCst)).sum()
    }

    /// Number of watches of the resource that are open now.
    pub fn watches(&self, resource: &str) -> usize {
        self.open(resource).len()
    }

    /// Silences the watches of the resource that are open now: they stay open and give
    /// nothing more, as behind a firewall that forgot them. Gives their number.
    pub fn stall_watches(&self, resource: &str) -> usize {
        let open = self.open(resource);
        for watch in &open {
            watch.stall();
        }
        open.len()
    }

    /// Cuts the connections of the watches of the resource that are open now. Gives their
    /// number.
    pub fn cut_watches(&self, resource: &str) -> usize {
        let open = self.open(resource);
        for watch in &open {
            watch.cut();
        }
        open.len()
    }

    /// Does `fault` to the next `times` requests that fit. The oldest rule that fits and is
    /// not used up counts.
    pub fn fail(&self, matching: Matching, fault: Fault, times: u32) {
        self.shared.state().rules.push(Rule { matching, fault, left: times });
    }

    /// Forgets all rules of [`Self::fail`].
    pub fn heal(&self) {
        self.shared.state().rules.clear();
    }

    /// Number of requests that wait by [`Fault::Delay`].
    pub fn delayed(&self) -> usize {
        self.shared.state().delayed
    }

    /// Lets the requests go that wait by [`Fault::Delay`].
    pub fn let_go(&self) {
        self.shared.gate.send_modify(|times| *times += 1);
    }

    /// Number of writes so far, failed ones included.
    pub fn writes(&self) -> u64 {
        self.shared.state().writes
    }

    /// Calls `callback` (to kill the host, say) at the `nth` write from the start of the
    /// proxy, counted from 1. It must not block. One that is past is never called.
    pub fn at_write(&self, nth: u64, when: When, callback: impl FnOnce() + Send + 'static) {
        self.shared.state().callbacks.insert(nth, (when, Box::new(callback)));
    }

    /// All requests so far that fit, in the order of coming.
    pub fn requests(&self, matching: &Matching) -> Vec<ProxiedRequest> {
        let state = self.shared.state();
        state.requests.iter().filter(|request| matching.fits(request)).cloned().collect()
    }

    /// Ends all connections and refuses new ones, until [`Self::accept`].
    pub async fn refuse(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            // Ends as aborted; the port is free afterwards.
            let _ = server.await;
        }
    }

    /// Takes connections again, on the same port.
    ///
    /// # Errors
    /// If another process listens on the port.
    pub async fn accept(&mut self) -> Result<()> {
        if self.server.is_none() {
            let listener = TcpListener::bind(self.address)
                .await
                .with_context(|| format!("listening on {} again", self.address))?;
            self.server = Some(tokio::spawn(serve(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    fn open(&self, resource: &str) -> Vec<Arc<OpenWatch>> {
        let mut state = self.shared.state();
        state.watches.retain(|watch| !watch.is_closed());
        state.watches.iter().filter(|watch| watch.resource == resource).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

/// Takes connections until it is aborted, which ends them all.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                // Small answers to small questions: waiting for more would cost 40 ms.
                let _ = socket.set_nodelay(true);
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let shared = Arc::clone(&shared);
                        async move { shared.answer(request).await }
                    });
                    // An error is a connection that was cut, by the client or on purpose.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
            Some(_) = connections.join_next() => (),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request, from its coming to the head of its answer. `Err` cuts the connection.
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Cut> {
        let entry = self.entry(&request);
        let (index, fault, callback) = self.note(&entry);
        match fault {
            Some(Fault::Answer { code, retry_after_s }) => {
                self.state().requests[index].code = code;
                return Ok(refusal(code, retry_after_s));
            }
            Some(Fault::LoseRequest) => return Err(Cut),
            Some(Fault::Delay) => self.wait_for_gate().await,
            Some(Fault::LoseResponse) | None => (),
        }
        let mut after = None;
        match callback {
            Some((When::Before, callback)) => {
                callback();
                return Err(Cut);
            }
            Some((When::After, callback)) => after = Some(callback),
            None => (),
        }

        // What the client would see if the server were gone: no answer.
        let Ok(response) = self.forward(request).await else { return Err(Cut) };
        if fault == Some(Fault::LoseResponse) || after.is_some() {
            // The head comes when the write is done; the body must not be waited for.
            if let Some(callback) = after {
                callback();
            }
            return Err(Cut);
        }
        self.state().requests[index].code = response.status().as_u16();
        let (parts, body) = response.into_parts();
        let body = if entry.watch && parts.status == StatusCode::OK {
            let open = OpenWatch::new(&entry.target.resource);
            self.state().watches.push(Arc::clone(&open));
            let frames = watch::carry(body, open, self.held.subscribe());
            let frames = stream::unfold(frames, async |mut frames| {
                frames.recv().await.map(|frame| (frame, frames))
            });
            BodyExt::boxed(StreamBody::new(frames))
        } else {
            let bytes = body.collect().await.map_err(|_| Cut)?.to_bytes();
            full(bytes)
        };
        let mut answer = Response::from_parts(parts, body);
        for name in HOP_BY_HOP {
            answer.headers_mut().remove(name);
        }
        Ok(answer)
    }

    fn entry(&self, request: &Request<Incoming>) -> ProxiedRequest {
        let uri = request.uri();
        let text = uri.path_and_query().map_or("/", |text| text.as_str());
        let query = uri.query().unwrap_or_default();
        let impersonated = request.headers().get("impersonate-user");
        ProxiedRequest {
            at: self.started.elapsed(),
            method: request.method().to_string(),
            uri: text.to_owned(),
            target: Target::parse(uri.path()),
            watch: query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")),
            impersonated: impersonated.and_then(|user| user.to_str().ok()).map(str::to_owned),
            code: 0,
        }
    }

    /// Logs the request, and says what is to happen to it.
    fn note(&self, entry: &ProxiedRequest) -> (usize, Option<Fault>, Option<(When, Callback)>) {
        let mut state = self.state();
        let index = state.requests.len();
        state.requests.push(entry.clone());
        let mut callback = None;
        if entry.is_write() {
            state.writes += 1;
            let count = state.writes;
            callback = state.callbacks.remove(&count);
        }
        let rule = state.rules.iter_mut().find(|rule| rule.left > 0 && rule.matching.fits(entry));
        let fault = rule.map(|rule| {
            rule.left -= 1;
            rule.fault
        });
        (index, fault, callback)
    }

    async fn wait_for_gate(&self) {
        let mut gate = self.gate.subscribe();
        self.state().delayed += 1;
        // Fails only if the proxy is gone.
        let _ = gate.changed().await;
        self.state().delayed -= 1;
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<kube::client::Body>> {
        let (mut parts, body) = request.into_parts();
        for name in HOP_BY_HOP {
            parts.headers.remove(name);
        }
        // Watches are read line by line here, so nothing may be compressed.
        parts.headers.remove(header::ACCEPT_ENCODING);
        let text = parts.uri.path_and_query().map_or("/", |text| text.as_str());
        parts.uri = text.parse()?;
        let bytes = body.collect().await?.to_bytes();
        let request = Request::from_parts(parts, kube::client::Body::from(bytes));
        Ok(self.upstream.send(request).await?)
    }
}

/// An answer in the form that Kubernetes gives errors.
fn refusal(code: u16, retry_after_s: Option<u32>) -> Answer {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let mut details = serde_json::Map::new();
    if let Some(seconds) = retry_after_s {
        details.insert("retryAfterSeconds".to_owned(), seconds.into());
    }
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused by the test's proxy", "reason": reason, "code": code, "details": details,
    });
    let mut answer = Response::new(full(Bytes::from(status.to_string())));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after_s {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

fn full(bytes: Bytes) -> BoxBody<Bytes, Cut> {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed()
}
