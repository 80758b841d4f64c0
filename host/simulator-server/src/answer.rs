//! Answers HTTP requests by the simulator: authenticates the user, and ends the body of a watch
//! when the server stops.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use innkeeper_simulator::{Body, Simulator, User};
use serde_json::json;

use crate::credentials::Token;
use crate::interceptor::{BoxError, Interceptor};
use crate::stop::Stop;

/// The maximum size of a request body, as of a real API server.
const BODY_BYTES: usize = 3 * 1024 * 1024;

/// A connection that breaks, by its interceptor or since the server stops.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(BoxError);

/// Answers all requests of a server.
pub(crate) struct Answerer {
    pub(crate) simulator: Simulator,
    pub(crate) token: Token,
    pub(crate) stop: Stop,
    pub(crate) interceptor: Option<Interceptor>,
}

impl Answerer {
    /// Answers one request.
    ///
    /// # Errors
    /// If the interceptor breaks the connection, or the server stops before its answer.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Streamed>, Broken> {
        let (mut parts, body) = request.into_parts();
        let Some(user) = self.user(&parts.headers) else {
            return Ok(refuse(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized"));
        };
        // The log of the simulator must not contain the token.
        parts.headers.remove(header::AUTHORIZATION);
        let body = match Limited::new(body, BODY_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let why = format!("Request entity too large: limit is {BODY_BYTES}");
                return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &why));
            }
            // The client has disconnected: nobody reads the response.
            Err(error) => {
                return Ok(refuse(StatusCode::BAD_REQUEST, "BadRequest", &error.to_string()));
            }
        };
        let mut request = Request::from_parts(parts, body);
        // Nobody without a token causes a fault.
        let interceptor = self.interceptor.as_ref().filter(|_| user != User::anonymous());
        let response = match interceptor {
            None => self.simulator.request_as(user, request).map(Inner::Answer),
            Some(interceptor) => {
                request.extensions_mut().insert(user);
                tokio::select! {
                    biased;
                    () = self.stop.clone().requested() => return Err(Broken("the server stops".into())),
                    answer = interceptor(request) => answer.map_err(Broken)?.map(Inner::Intercepted),
                }
            }
        };
        let ended = Box::pin(self.stop.clone().requested());
        Ok(response.map(|inner| Streamed { inner, ended: Some(ended) }))
    }

    /// Refuses a request, since too many connections are open.
    pub(crate) fn refuse_busy() -> Response<Streamed> {
        let why = "too many connections are open; close some and try again";
        let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", why);
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    /// The user of a request; `None` if the token is neither the admin's nor a ServiceAccount's.
    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let Some(shown) = headers.get(header::AUTHORIZATION) else {
            return Some(User::anonymous());
        };
        let token = shown.to_str().ok()?.strip_prefix("Bearer ")?.trim();
        if self.token.is(token) {
            return Some(User::admin());
        }
        self.simulator.user_of(token)
    }
}

/// A refusal by the server itself.
fn refuse(code: StatusCode, reason: &str, message: &str) -> Response<Streamed> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16()});
    let body = Bytes::from(format!("{status}\n"));
    let mut response = Response::new(Streamed { inner: Inner::Own(Some(body)), ended: None });
    *response.status_mut() = code;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A body that ends at the latest when the server stops.
pub(crate) struct Streamed {
    inner: Inner,
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

enum Inner {
    Answer(Body),
    Intercepted(UnsyncBoxBody<Bytes, BoxError>),
    Own(Option<Bytes>),
}

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let next = match &mut self.inner {
            Inner::Answer(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Inner::Intercepted(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(Broken))),
            Inner::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        };
        if next.is_ready() {
            return next;
        }
        match &mut self.ended {
            Some(ended) => ended.as_mut().poll(context).map(|()| None),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Answer(body) => body.is_end_stream(),
            Inner::Intercepted(body) => body.is_end_stream(),
            Inner::Own(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Answer(body) => body.size_hint(),
            Inner::Intercepted(body) => body.size_hint(),
            Inner::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
