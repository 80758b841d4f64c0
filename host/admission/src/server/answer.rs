//! From a request to its response.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use tokio::sync::watch;
use tokio::time::Instant;

use super::activity::Activity;
use super::deadline::request_time;
use super::drain::Drain;
use super::limits::ServerLimits;
use super::refusal::Refusal;
use super::shared::Shared;
use super::statistics::RunningRequest;
use super::{body, policy_path};
use crate::admission_review::AdmissionRequest;
use crate::reviewer::{Reviewed, Reviewer, WebhookRef};

/// What the server needs of the head of a request.
struct RequestHead {
    webhook: WebhookRef,
    started: Instant,
    time: Duration,
}

/// Answers a request.
pub(super) async fn answer<R: Reviewer>(
    shared: &Shared<R>,
    address: IpAddr,
    activity: &Activity,
    drain: &watch::Receiver<Drain>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    activity.set_request();
    let _running = RunningRequest::count(&shared.statistics);
    let (head, mut body) = request.into_parts();
    // Held until the end of the review, which reads the body in place.
    let mut budget = shared.bodies.part(address);
    let received = match read_head(&head, &shared.limits) {
        Ok(head) => body::receive(&mut body, &mut budget, &shared.limits, head.time)
            .await
            .map(|bytes| (head, bytes)),
        Err(refusal) => Err(refusal),
    };
    // A connection whose body is not read to its end cannot have another request.
    let is_read = received.is_ok() || body.is_end_stream();
    let reviewed = match received {
        Ok((head, bytes)) => review(shared, head, &bytes).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = match reviewed {
        Ok(review) => with_type(review, "application/json"),
        Err(refusal) => refuse(shared, &refusal),
    };
    if is_read && *drain.borrow() == Drain::No {
        activity.set_answered();
    } else {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        activity.set_closing();
    }
    response
}

/// Reads the head of a request.
fn read_head(head: &Parts, limits: &ServerLimits) -> Result<RequestHead, Refusal> {
    let webhook = policy_path::webhook(head.uri.path())?;
    if head.method != Method::POST {
        return Err(Refusal::Method);
    }
    let text = |name: HeaderName| {
        head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
    };
    let content_type = text(CONTENT_TYPE).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::content_type(&content_type));
    }
    if let Some(encoding) = text(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        return Err(Refusal::content_encoding(&encoding));
    }
    let time = request_time(head.uri.query(), limits)?;
    Ok(RequestHead { webhook, started: Instant::now(), time })
}

/// Reviews the AdmissionReview in `body`; returns the one that answers it.
async fn review<R: Reviewer>(
    shared: &Shared<R>,
    head: RequestHead,
    body: &[u8],
) -> Result<String, Refusal> {
    let request = AdmissionRequest::read(body)?;
    let uid = request.uid.clone();
    let deadline = head.started + head.time;
    let reviewed = shared.reviewer.review(head.webhook.clone(), request, deadline.into_std());
    let reviewed = tokio::time::timeout_at(deadline, reviewed).await;
    let reviewed = reviewed.map_err(|_| Refusal::DeadlineExceeded(head.time))?;
    result(reviewed, head.webhook, &uid)
}

/// Returns the AdmissionReview that answers the request with this `uid`.
pub(super) fn result(
    reviewed: Reviewed,
    webhook: WebhookRef,
    uid: &str,
) -> Result<String, Refusal> {
    match reviewed {
        Reviewed::Answer(response) => Ok(response.review(uid).to_string()),
        Reviewed::UnknownPolicy => Err(Refusal::UnknownPolicy(webhook)),
        Reviewed::Overloaded(why) => Err(Refusal::Overloaded(why)),
        Reviewed::Failed(why) => Err(Refusal::ReviewFailed(why)),
    }
}

fn refuse<R>(shared: &Shared<R>, refusal: &Refusal) -> Response<Full<Bytes>> {
    tracing::debug!(reason = refusal.reason(), error = %refusal, "admission request refused");
    shared.count_refusal(refusal.reason());
    let mut response = with_type(format!("{refusal}\n"), "text/plain; charset=utf-8");
    *response.status_mut() = refusal.status();
    let header = match refusal {
        Refusal::Method => Some((ALLOW, "POST")),
        // The API server sends the request again by itself, as its time allows.
        Refusal::BodiesFull => Some((RETRY_AFTER, "1")),
        _ => None,
    };
    response
        .headers_mut()
        .extend(header.map(|(name, text)| (name, HeaderValue::from_static(text))));
    response
}

fn with_type(body: String, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
