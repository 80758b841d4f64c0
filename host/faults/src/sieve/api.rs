//! A served API whose requests a plan affects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::Service;

use crate::body::{self, AnswerBody, BoxError};
use crate::crash_signal::CrashSignal;
use crate::request_info::{RequestInfo, Verb};
use crate::restart::Restart;
use crate::sieve::action::PausePoint;
use crate::sieve::coordinator::TICK;
use crate::sieve::discovery::{self, AGGREGATED, ServedKind};
use crate::sieve::list_view::{self, FrozenList};
use crate::sieve::plan::SievePlan;
use crate::sieve::resource_key::ResourceKey;
use crate::sieve::session::Session;
use crate::sieve::view::SessionView;
use crate::sieve::view_body::{View as _, ViewBody};

/// Carries out a plan at a served API. Clones are the same one.
#[derive(Clone)]
pub(crate) struct SieveApi<S> {
    server: S,
    session: Arc<Mutex<Session>>,
    /// Held while watches of the kinds of the plan are opened.
    opening: Arc<tokio::sync::Mutex<()>>,
}

/// Where a request arrived.
#[derive(Clone)]
pub(crate) struct Arrival {
    /// The name of the API server.
    pub(crate) server: String,
    /// Whether the client under test sent it.
    pub(crate) is_of_client: bool,
}

impl<S> SieveApi<S> {
    pub(crate) fn new(
        server: S,
        plan: SievePlan,
        reports: mpsc::Sender<String>,
        restarts: mpsc::UnboundedSender<Restart>,
    ) -> Self {
        let session = Session::new(plan, reports, restarts);
        Self { server, session: Arc::new(Mutex::new(session)), opening: Arc::default() }
    }

    /// Says whether the client under test has crashed.
    pub(crate) fn crash_signal(&self) -> CrashSignal {
        self.lock().crash_signal()
    }

    /// The client was started again, at an API server.
    pub(crate) fn client_started(&self, server: &str) {
        self.lock().client_started(server);
    }

    /// The actions that have not happened, in order, as a person reads them.
    pub(crate) fn pending_lines(&self) -> Vec<String> {
        self.lock().pending_lines()
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a pause holds.
    async fn wait_while(&self, holds: impl Fn(&Session) -> bool) {
        loop {
            let mut changed = {
                let session = self.lock();
                if !holds(&session) {
                    return;
                }
                session.changed()
            };
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

impl<S, B> SieveApi<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Lets the times of the plan pass, until the future is dropped.
    pub(crate) async fn run(&self) -> Result<(), BoxError> {
        loop {
            self.catch_up().await?;
            tokio::time::sleep(TICK).await;
        }
    }

    /// Answers a request.
    pub(crate) async fn call(
        &self,
        arrival: Arrival,
        request: Request<Bytes>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        self.catch_up().await?;
        let info = RequestInfo::of(&request, request.body());
        let kind = self.lock().kind_of(&info).map(str::to_owned);
        let kind = kind.filter(|kind| self.lock().changes.has(kind));
        let response = match (&kind, info.verb) {
            (Some(kind), Verb::Watch) => self.watch(&arrival, kind, request).await,
            (Some(kind), Verb::List) => self.list(&arrival, kind, request).await,
            (Some(kind), Verb::Get) => {
                let key = ResourceKey::new(kind, &info.namespace, &info.name);
                if arrival.is_of_client {
                    self.wait_while(|session| session.pauses.holds_reads(&key)).await;
                }
                self.send(request).await
            }
            _ if arrival.is_of_client && info.is_write() => {
                self.write(&info, kind.as_deref().unwrap_or(&info.resource), request).await
            }
            _ => self.send(request).await,
        }?;
        self.catch_up().await?;
        Ok(response)
    }

    async fn list(
        &self,
        arrival: &Arrival,
        kind: &str,
        request: Request<Bytes>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        if arrival.is_of_client {
            self.wait_while(|session| session.pauses.holds_kind(kind)).await;
        }
        let frozen = self.lock().pauses.frozen(&arrival.server, kind);
        let Some(frozen) = frozen else { return self.send(request).await };
        match list_view::frozen_list(request, frozen)? {
            FrozenList::At(request) | FrozenList::Recent(request) => self.send(request).await,
            FrozenList::TooNew => Ok(list_view::too_new()),
        }
    }

    async fn watch(
        &self,
        arrival: &Arrival,
        kind: &str,
        request: Request<Bytes>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        let view = SessionView {
            api_server: self.server.clone(),
            session: self.session.clone(),
            server: arrival.server.clone(),
            kind: kind.to_owned(),
            is_of_client: arrival.is_of_client,
        };
        if view.frozen().is_some() {
            let mut response = Response::new(());
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert("content-type", json);
            let body = ViewBody::new(view, kind, request, None);
            return Ok(response.map(|()| body.boxed_unsync()));
        }
        let response = self.send(request.clone()).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        Ok(response.map(|body| ViewBody::new(view, kind, request, Some(body)).boxed_unsync()))
    }

    async fn write(
        &self,
        info: &RequestInfo,
        kind: &str,
        request: Request<Bytes>,
    ) -> Result<Response<AnswerBody>, BoxError> {
        let key = ResourceKey::new(kind, &info.namespace, &info.name);
        let previous = self.lock().changes.state(&key).cloned();
        self.wait_while(|session| session.pauses.holds(PausePoint::BeforeWrite, &key)).await;
        // A patch shows the object only once it is carried out.
        let wanted = match info.verb {
            Verb::Create | Verb::Update => serde_json::from_slice(request.body()).ok(),
            _ => None,
        };
        if wanted.is_some() || info.verb == Verb::Delete {
            let (before, now) = (previous.as_ref(), Instant::now());
            self.lock().observe_write(true, &key, before, wanted.as_ref(), now);
        }
        if self.crash_signal().is_crashed() {
            return Err("the client has crashed".into());
        }
        let response = self.send(request).await?;
        self.catch_up().await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        let current: Option<Value> = match info.verb {
            Verb::Delete => None,
            _ => serde_json::from_slice(&body).ok(),
        };
        if current.is_some() || info.verb == Verb::Delete {
            let (before, now) = (previous.as_ref(), Instant::now());
            // An object with a generated name has it only in the answer.
            let name = current.as_ref().and_then(|object| object["metadata"]["name"].as_str());
            let key = ResourceKey { name: name.unwrap_or(&key.name).to_owned(), ..key.clone() };
            self.lock().observe_write(false, &key, before, current.as_ref(), now);
        }
        self.wait_while(|session| session.pauses.holds(PausePoint::AfterWrite, &key)).await;
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        Ok(Response::from_parts(parts, body))
    }

    /// Observes what has happened, and opens watches for what may happen.
    async fn catch_up(&self) -> Result<(), BoxError> {
        if !self.lock().changes.unwatched().is_empty() {
            let _opening = self.opening.lock().await;
            self.open_watches().await?;
        }
        self.lock().catch_up(Instant::now());
        Ok(())
    }

    async fn open_watches(&self) -> Result<(), BoxError> {
        let unwatched = self.lock().changes.unwatched();
        let is_known =
            |session: &Session, kind: &str| session.kinds.iter().any(|served| served.kind == kind);
        if unwatched.iter().any(|(kind, _)| !is_known(&self.lock(), kind)) {
            let mut kinds = discovery::kinds(&self.document("/api").await?);
            kinds.extend(discovery::kinds(&self.document("/apis").await?));
            self.lock().kinds = kinds;
        }
        for (kind, version) in unwatched {
            let path = {
                let session = self.lock();
                session.kinds.iter().find(|served| served.kind == kind).map(ServedKind::path)
            };
            // A kind that is not defined yet is looked for again.
            let Some(path) = path else { continue };
            let uri =
                format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
            let response = self.send(Request::builder().uri(uri).body(Bytes::new())?).await?;
            if response.status().is_success() {
                self.lock().changes.watch(&kind, response.into_body());
            } else {
                self.lock().changes.forget_version(&kind);
            }
        }
        Ok(())
    }

    /// A document of discovery.
    async fn document(&self, path: &str) -> Result<Value, BoxError> {
        let request = Request::builder().uri(path).header("accept", AGGREGATED);
        let response = self.send(request.body(Bytes::new())?).await?;
        let body = response.into_body().collect().await?.to_bytes();
        Ok(serde_json::from_slice(&body)?)
    }

    /// Has the API server carry out a request.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<AnswerBody>, BoxError> {
        body::send(self.server.clone(), request).await
    }
}
