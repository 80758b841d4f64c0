//! Answers of a server, and their bodies.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tower::{Service, ServiceExt as _};

use crate::fault::Refusal;

/// Any error of a body or a service.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Has a server carry out a request.
///
/// # Errors
/// If the server has no answer.
pub(crate) async fn send<S, B>(
    server: S,
    request: Request<Bytes>,
) -> Result<Response<AnswerBody>, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let response = server.oneshot(request.map(Full::new)).await.map_err(Into::into)?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// An answer by which the server refuses a request.
///
/// # Errors
/// If the code is no HTTP status.
pub(crate) fn refusal(refusal: &Refusal) -> Result<Response<AnswerBody>, http::Error> {
    let reason = refusal.reason();
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "reason": reason, "code": refusal.code,
        "message": format!("{reason}: injected fault")});
    let mut response =
        Response::builder().status(refusal.code).header("content-type", "application/json");
    if let Some(seconds) = refusal.retry_after_seconds {
        status["details"] = json!({"retryAfterSeconds": seconds});
        response = response.header("retry-after", seconds);
    }
    let body = Full::from(status.to_string()).map_err(|never| match never {}).boxed_unsync();
    response.body(body)
}
