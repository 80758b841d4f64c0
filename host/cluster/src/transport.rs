//! The layer between the kube client and the connection: deadlines, repeats, and impersonation.
//!
//! - The server has to answer a get, a write or a page of a list, body included, within a limit.
//! - The transport repeats a request after 429, 503, 504 and broken connections where that is safe:
//!   a read always; a write if it never reached the server (429, connection refused), or if its
//!   second execution has the effect of the first. Otherwise the caller gets the error that the
//!   response is lost.
//! - The transport ends a watch that the server has not ended in time, so a silently dead
//!   connection does not stay open.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use kube::client::Body;
use tokio::time::Sleep;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

use crate::env::Backoff;
use crate::settings::{RETRY_MAX, RETRY_MIN};
use crate::{Env, Fence, Revocation, Settings};

const IMPERSONATE_USER: &str = "Impersonate-User";

/// The prefix of the names of all impersonation headers.
const IMPERSONATE: &str = "impersonate-";

/// Whether a header impersonates a user, a uid, a group, or extra attributes.
pub(crate) fn is_impersonation(name: &HeaderName) -> bool {
    name.as_str().starts_with(IMPERSONATE)
}

/// A request extension: to send the request twice has the effect of sending it once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeatable;

/// A request extension: the largest response, in bytes. A larger one is an error, and the transport
/// does not repeat the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerBytesMax(pub(crate) usize);

/// The number of requests, with repeats, by method and status; status 0 is for requests without a
/// response.
pub type Requests = BTreeMap<(Box<str>, u16), u64>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<Requests>>);

impl Counts {
    fn count(&self, method: &Method, code: u16) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((method.as_str().into(), code)).or_default() += 1;
    }

    pub(crate) fn all(&self) -> Requests {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The connections to one API server. A clone shares them, and needs no task of its own, as a
/// [`kube::Client`] does: each task that a request passes costs a change of threads.
pub(crate) type Pool = BoxCloneSyncService<Request<Body>, Response<ResponseBody>, BoxError>;

/// The body of a response, as it arrives.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, BodyError>;

/// The error of a body that breaks off.
#[derive(Debug)]
pub(crate) struct BodyError(BoxError);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// The pool over a service whose clones share their connections.
pub(crate) fn pool<S, B>(service: S) -> Pool
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let erased = |body: B| body.map_err(|error| BodyError(error.into())).boxed_unsync();
    let service = service.map_err(Into::into);
    BoxCloneSyncService::new(service.map_response(move |response| response.map(erased)))
}

/// Requests of one identity over the shared connection pool.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) pool: Pool,
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    pub(crate) counts: Counts,
    /// The fence that closes when the Lease expires.
    pub(crate) fence: Fence,
    /// The user to impersonate.
    pub(crate) user: Option<HeaderValue>,
    /// The revocation of this client.
    pub(crate) revocation: Revocation,
}

/// The error of a request without a usable response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoAnswer {
    pub(crate) message: String,
    /// A time limit ran out.
    pub(crate) late: bool,
    /// The server may have received the request.
    pub(crate) may_have_arrived: bool,
    /// The response has more than [`AnswerBytesMax`].
    pub(crate) too_large: bool,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NoAnswer {}

impl NoAnswer {
    /// An error of this transport that passed other layers, or one of theirs: the server may have
    /// received the request then.
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let other = || Self {
            message: error.to_string(),
            late: false,
            may_have_arrived: true,
            too_large: false,
        };
        error.downcast_ref().cloned().unwrap_or_else(other)
    }
}

/// The sort of a request, which decides its limits.
enum Call {
    Watch,
    List,
    Unary { repeatable: bool },
}

impl Call {
    fn of(request: &Request<Body>) -> Self {
        let has = |name: &str| {
            request.uri().query().is_some_and(|query| {
                query
                    .split('&')
                    .any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name))
            })
        };
        let read = request.method() == Method::GET;
        if read && has("watch") {
            Self::Watch
        } else if read && has("limit") {
            Self::List
        } else {
            Self::Unary { repeatable: read || request.extensions().get::<Repeatable>().is_some() }
        }
    }
}

/// The result of one attempt.
enum Attempt {
    Answered(Response<Bytes>),
    /// The server did not receive the request: a repeat is safe.
    NotDone(NoAnswer),
    /// The server may have received the request.
    InDoubt(NoAnswer),
}

impl Transport {
    /// Sends a request as this identity, within its limits.
    ///
    /// # Errors
    /// [`NoAnswer`] if there is no response that can be used.
    pub(crate) fn send(
        &self,
        mut request: Request<Body>,
    ) -> BoxFuture<'_, Result<Response<BoundedBody>, NoAnswer>> {
        self.identify(request.headers_mut());
        let Settings { list_timeout, unary_timeout, .. } = self.settings;
        match Call::of(&request) {
            Call::Watch => self.watch(request).boxed(),
            Call::List => self.unary(request, list_timeout, true).boxed(),
            Call::Unary { repeatable } => self.unary(request, unary_timeout, repeatable).boxed(),
        }
    }

    /// Sets the identity of this client, and removes all other impersonation headers.
    fn identify(&self, headers: &mut HeaderMap) {
        let others: Vec<_> =
            headers.keys().filter(|name| is_impersonation(name)).cloned().collect();
        for name in others {
            headers.remove(name);
        }
        if let Some(user) = &self.user {
            headers.insert(IMPERSONATE_USER, user.clone());
        }
    }

    /// The error of a request behind a closed fence.
    fn fenced() -> NoAnswer {
        NoAnswer {
            message: "this host's Lease has expired: nothing is sent".to_owned(),
            late: false,
            may_have_arrived: false,
            too_large: false,
        }
    }

    /// The error of a request of a revoked client.
    fn revoked() -> NoAnswer {
        NoAnswer {
            message: "the ServiceAccount does not allow this module to act as it: nothing is sent"
                .to_owned(),
            late: false,
            may_have_arrived: false,
            too_large: false,
        }
    }

    async fn watch(&self, request: Request<Body>) -> Result<Response<BoundedBody>, NoAnswer> {
        if self.fence.is_closed() {
            return Err(Self::fenced());
        }
        if self.revocation.is_revoked() {
            return Err(Self::revoked());
        }
        let whole = self.settings.watch_timeout + self.settings.watch_grace;
        // The server sends the head of a watch at once, or the connection is dead.
        let sent = self.pool.clone().oneshot(request);
        let response = match self.env.timeout(self.settings.unary_timeout, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(no_answer(&*error)),
            Err(elapsed) => {
                return Err(NoAnswer {
                    message: format!("watch: {elapsed}"),
                    late: true,
                    may_have_arrived: true,
                    too_large: false,
                });
            }
        };
        Ok(response.map(|body| BoundedBody::Watch {
            body,
            end: Box::pin(tokio::time::sleep(whole)),
            whole,
        }))
    }

    async fn unary(
        &self,
        request: Request<Body>,
        limit: Duration,
        repeatable: bool,
    ) -> Result<Response<BoundedBody>, NoAnswer> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(|error| no_answer(&error))?;
        let bytes_max = parts.extensions.get().map_or(usize::MAX, |AnswerBytesMax(max)| *max);
        let mut backoff = Backoff::new(&self.env, RETRY_MIN, RETRY_MAX);
        let mut left = self.settings.retries;
        let mut in_doubt = false;
        loop {
            // Time has passed since the caller's check: by waits for repeats, or a pause of the
            // host.
            let left_to_send = self.fence.left();
            if left_to_send.is_zero() {
                return Err(NoAnswer { may_have_arrived: in_doubt, ..Self::fenced() });
            }
            if self.revocation.is_revoked() {
                return Err(NoAnswer { may_have_arrived: in_doubt, ..Self::revoked() });
            }
            let limit = limit.min(left_to_send);
            let mut request = Request::new(Body::from(body.clone()));
            request.method_mut().clone_from(&parts.method);
            request.uri_mut().clone_from(&parts.uri);
            request.headers_mut().clone_from(&parts.headers);

            let attempt = self.attempt(request, limit, bytes_max).await;
            let code = match &attempt {
                Attempt::Answered(response) => response.status().as_u16(),
                Attempt::NotDone(_) | Attempt::InDoubt(_) => 0,
            };
            self.counts.count(&parts.method, code);
            let (wait, repeat) = match &attempt {
                Attempt::Answered(response) => match response.status() {
                    StatusCode::TOO_MANY_REQUESTS => (retry_after(response), true),
                    StatusCode::SERVICE_UNAVAILABLE => (retry_after(response), repeatable),
                    StatusCode::GATEWAY_TIMEOUT => {
                        in_doubt = true;
                        (retry_after(response), repeatable)
                    }
                    _ => (None, false),
                },
                Attempt::NotDone(_) => (None, true),
                Attempt::InDoubt(error) => {
                    in_doubt = true;
                    (None, repeatable && !error.too_large)
                }
            };
            if !repeat || left == 0 || wait.is_some_and(|wait| wait > RETRY_MAX) {
                return match attempt {
                    Attempt::Answered(response) => {
                        Ok(response.map(|bytes| BoundedBody::Whole(Full::new(bytes))))
                    }
                    Attempt::NotDone(error) | Attempt::InDoubt(error) => {
                        Err(NoAnswer { may_have_arrived: in_doubt, ..error })
                    }
                };
            }
            left -= 1;
            let own = backoff.advance();
            self.env.sleep(wait.map_or(own, |wait| wait.max(own))).await;
        }
    }

    async fn attempt(&self, request: Request<Body>, limit: Duration, bytes_max: usize) -> Attempt {
        let answered = self.env.timeout(limit, async {
            let sent = self.pool.clone().oneshot(request).await;
            let response = sent.map_err(|error| no_answer(&*error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, bytes_max).collect().await;
            let bytes = body.map_err(|error| no_body(&*error, bytes_max))?.to_bytes();
            Ok::<_, NoAnswer>(Response::from_parts(parts, bytes))
        });
        match answered.await {
            Ok(Ok(response)) => Attempt::Answered(response),
            Ok(Err(error)) => {
                if error.may_have_arrived {
                    Attempt::InDoubt(error)
                } else {
                    Attempt::NotDone(error)
                }
            }
            Err(elapsed) => Attempt::InDoubt(NoAnswer {
                message: elapsed.to_string(),
                late: true,
                may_have_arrived: true,
                too_large: false,
            }),
        }
    }
}

fn retry_after(response: &Response<Bytes>) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The error of an incomplete body.
fn no_body(error: &(dyn std::error::Error + Send + Sync + 'static), bytes_max: usize) -> NoAnswer {
    if error.is::<BodyError>() {
        return no_answer(error);
    }
    let too_large = error.is::<LengthLimitError>();
    let message = if too_large {
        format!("the answer has more than {} KiB", bytes_max >> 10)
    } else {
        error.to_string()
    };
    NoAnswer { message, late: false, may_have_arrived: true, too_large }
}

/// The error of a request that failed on the connection.
fn no_answer(error: &(dyn std::error::Error + Send + Sync + 'static)) -> NoAnswer {
    let mut message = String::new();
    let mut may_have_arrived = true;
    // The innermost error has the cause.
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
            || error
                .downcast_ref::<hyper_util::client::legacy::Error>()
                .is_some_and(hyper_util::client::legacy::Error::is_connect)
        {
            may_have_arrived = false;
        }
        message = error.to_string();
        next = error.source();
    }
    if matches!(error.downcast_ref(), Some(kube::Error::Auth(_))) {
        may_have_arrived = false;
        message = error.to_string();
    }
    NoAnswer { message, late: false, may_have_arrived, too_large: false }
}

/// The body of a response: a whole one, or that of a watch with its time limit.
pub(crate) enum BoundedBody {
    Whole(Full<Bytes>),
    Watch { body: ResponseBody, end: Pin<Box<Sleep>>, whole: Duration },
}

impl From<String> for BoundedBody {
    fn from(text: String) -> Self {
        Self::Whole(Full::from(text))
    }
}

impl HttpBody for BoundedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Self::Watch { body, end, whole } => {
                if end.as_mut().poll(cx).is_ready() {
                    let seconds = whole.as_secs();
                    let message = format!(
                        "the server did not end a watch within {seconds} s; the host ends it"
                    );
                    return Poll::Ready(Some(Err(message.into())));
                }
                Pin::new(body).poll_frame(cx).map_err(Into::into)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Watch { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Watch { body, .. } => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests;
