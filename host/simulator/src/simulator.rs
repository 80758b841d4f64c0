//! The simulator as a tower Service.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use ::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};

use crate::api::dispatch;
use crate::api::http::body::Body;
use crate::api::http::query::Query;
use crate::api::request::{Request, Response as ApiResponse};
use crate::auth::impersonated_user::ImpersonatedUser;
use crate::auth::token;
use crate::auth::user::User;
use crate::controllers::{
    custom_resource_definition, kubelet, manager, restart, root_ca_publisher,
};
use crate::mutation::{Mutation, is_active};
use crate::state::backup::Backup;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Controllers;
use crate::state::pod_script::PodScript;
use crate::state::webhook_handlers::WebhookReply;

/// Any error of a request body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A simulated API server. Clones are the same one.
///
/// It does nothing by itself: requests come through [`tower::Service`] or [`Simulator::request`],
/// and time through [`Simulator::advance`].
#[derive(Clone, Debug)]
pub struct Simulator {
    cluster: Arc<Mutex<Cluster>>,
}

impl Simulator {
    /// An empty cluster at a point in time, with the controllers that work without nodes. What is
    /// random in it comes from the seed.
    pub fn new(seed: u64, now: Timestamp) -> Self {
        Self::with(seed, now, Controllers::default())
    }

    /// The same with other controllers.
    pub fn with(seed: u64, now: Timestamp, controllers: Controllers) -> Self {
        Self {
            cluster: Arc::new(Mutex::new(Cluster::new(
                seed,
                now,
                controllers,
                custom_resource_definition::HOOKS,
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The virtual time.
    pub fn now(&self) -> Timestamp {
        self.lock().now()
    }

    /// The version of the last write.
    pub fn version(&self) -> u64 {
        self.lock().store.version()
    }

    /// Advances the virtual clock: controllers run, watches get bookmarks and end.
    pub fn advance(&self, by: SignedDuration) {
        manager::advance(&mut self.lock(), by);
    }

    /// Runs the controllers until there is nothing to do, without advancing the clock.
    pub fn settle(&self) {
        manager::settle(&mut self.lock());
    }

    /// Sets how Pods run from here on, existing ones included.
    pub fn script_pods(&self, script: PodScript) {
        kubelet::script_pods(&mut self.lock(), script);
    }

    /// Answers an admission webhook in process: `handler` is called for this URL from here on. It
    /// takes an `AdmissionReview` (`admission.k8s.io/v1`, JSON) and gives one, or nothing: then it
    /// does not answer in time. A webhook that is reached by a Service has the URL
    /// `https://NAME.NAMESPACE.svc:PORT/PATH`, with the port 443 if none is given. The webhook
    /// configurations in the cluster decide when it is called.
    ///
    /// It is called within the request, so it must not send any itself.
    pub fn webhook(
        &self,
        url: &str,
        handler: impl FnMut(&serde_json::Value) -> Option<serde_json::Value> + Send + 'static,
    ) {
        self.lock().handlers.set(url, Box::new(handler));
    }

    /// Answers all admission webhooks with a URL below `prefix`, for example `https://host.test`.
    /// `handler` gets the rest of the URL, a path and a query with the time of the request as a
    /// real server sends it (`/policies/a?timeout=10s`), and the `AdmissionReview`.
    ///
    /// The handler of an exact URL ([`Self::webhook`]) goes before, and then the longest prefix.
    /// The handler is called within the request, so it must not send any itself.
    pub fn webhooks_below(
        &self,
        prefix: &str,
        handler: impl FnMut(&str, &serde_json::Value) -> WebhookReply + Send + 'static,
    ) {
        self.lock().handlers.set_below(prefix, Box::new(handler));
    }

    /// Sets the certificates by which clients check the server of this simulator, as PEM: each
    /// namespace has them in the ConfigMap `kube-root-ca.crt`.
    pub fn set_root_ca(&self, pem: &str) {
        let mut cluster = self.lock();
        pem.clone_into(&mut cluster.root_ca);
        root_ca_publisher::publish(&mut cluster);
    }

    /// Forgets what happened, so that watches that begin before now are answered by 410.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// Lets versions expire that are one to two intervals old, as a real API server does every five
    /// minutes: a list that continues at one gets 410. If the interval is 0, none expires.
    pub fn compact_every(&self, interval: SignedDuration) {
        self.lock().compact_every(interval);
    }

    /// A backup of etcd as it is now.
    pub fn backup(&self) -> Backup {
        self.lock().backup()
    }

    /// Restores a backup of etcd and restarts the API server: the objects are those of the backup,
    /// and open watches end. If `bump` is true, the revision is increased and compacted, as by
    /// `etcdutl snapshot restore --bump-revision --mark-compacted`: watches from before get 410.
    /// If it is false, the versions of the backup are given out once more: a watch from before gets
    /// no event until they pass its own.
    pub fn restore(&self, backup: &Backup, bump: bool) {
        restart::restore(&mut self.lock(), backup, bump);
    }

    /// The number of open watches.
    pub fn watchers(&self) -> usize {
        self.lock().watchers()
    }

    /// Keeps a log of requests, answers and events from here on.
    pub fn keep_log(&self) {
        self.lock().keep_log();
    }

    /// The log so far, a line each.
    pub fn log(&self) -> Vec<String> {
        self.lock().log().to_vec()
    }

    /// Answers a request of the admin with a complete body.
    pub fn request(&self, request: ::http::Request<Bytes>) -> Response<Body> {
        self.request_as(User::admin(), request)
    }

    /// The user of a token of a ServiceAccount, if the token is valid.
    pub fn user_of(&self, token: &str) -> Option<User> {
        token::token_user(&self.lock(), token)
    }

    /// Answers a request of a user, who may impersonate another.
    pub fn request_as(&self, user: User, request: ::http::Request<Bytes>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let text = |name: &str| header_text(&parts.headers, name);
        let acting = acting(&parts.headers);
        let request = Request {
            method: parts.method.as_str().to_owned(),
            path: parts.uri.path().to_owned(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            user,
            acting: (!acting.is_nobody()).then_some(acting),
            content_type: text("content-type"),
            accept: text("accept"),
            known: text("if-none-match"),
            agent: text("user-agent"),
            body,
        };
        let answer = dispatch::handle(&mut self.lock(), &request);
        respond(answer)
    }
}

/// The user that the Impersonate headers of a request name.
fn acting(headers: &HeaderMap) -> ImpersonatedUser {
    let all = |name: &str| {
        let values = headers.get_all(name).iter();
        values.map(value_text).collect::<Vec<_>>()
    };
    let extra = headers.keys().filter_map(|name| {
        let key = name.as_str().strip_prefix("impersonate-extra-")?;
        let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
        Some((key, all(name.as_str())))
    });
    ImpersonatedUser {
        name: header_text(headers, "impersonate-user"),
        groups: all("impersonate-group"),
        extra: extra.collect(),
        uid: header_text(headers, "impersonate-uid"),
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(value_text).unwrap_or_default()
}

/// The text of a header. A name in it may have any letters.
fn value_text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn respond(answer: ApiResponse) -> Response<Body> {
    let json = HeaderValue::from_static("application/json");
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut tag = None;
    let (code, kind, body, warnings) = match answer {
        ApiResponse::Json { code, body, warnings } => (code, json, Body::whole(body), warnings),
        ApiResponse::Of { code, kind, body } => {
            let kind = HeaderValue::from_str(&kind).unwrap_or(json);
            (code, kind, Body::whole(body), Vec::new())
        }
        ApiResponse::Tagged { etag, kind, body } => {
            tag = HeaderValue::from_str(&etag).ok();
            let code = if body.is_some() { 200 } else { 304 };
            let kind = HeaderValue::from_str(&kind).unwrap_or(json);
            (code, kind, Body::whole(body.unwrap_or_default()), Vec::new())
        }
        ApiResponse::Text { code, body } => {
            (code, text, Body::whole(Bytes::from(body)), Vec::new())
        }
        ApiResponse::Watch(feed) => (200, json, Body::watch(feed), Vec::new()),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    for warning in warnings.into_iter().filter(|_| !is_active(Mutation::WarningsAreKept)) {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

impl<B> tower::Service<::http::Request<B>> for Simulator
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ::http::Request<B>) -> Self::Future {
        let simulator = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok(simulator.request(::http::Request::from_parts(parts, body)))
        })
    }
}
