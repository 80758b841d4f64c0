//! Answers requests without a connection: those of a simulated API server in the same process.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::limits::ServerLimits;
use super::refusal::Refusal;
use super::{answer, deadline, policy_path};
use crate::admission_review::AdmissionRequest;
use crate::reviewer::Reviewer;

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProcessAnswer {
    /// The HTTP status; 200 for an AdmissionReview.
    pub status: u16,
    /// The AdmissionReview as JSON, or why there is none.
    pub body: String,
}

/// Answers the AdmissionReview in `body` as the server does that gets it by POST at the time `now`.
/// `path` is the path with its query, for example `/v1/policies/labels/0?timeout=10s`.
///
/// Returns `None` if the reviewer waits for something: nobody else can run meanwhile, so that no
/// response comes in time.
pub fn answer_in_process<R: Reviewer>(
    reviewer: &R,
    path: &str,
    body: &[u8],
    now: Instant,
) -> Option<InProcessAnswer> {
    let answer = match review(reviewer, path, body, now)? {
        Ok(body) => InProcessAnswer { status: 200, body },
        Err(refusal) => {
            InProcessAnswer { status: refusal.status().as_u16(), body: refusal.to_string() }
        }
    };
    Some(answer)
}

/// The AdmissionReview that answers the one in `body`, or why there is none; `None` if the reviewer
/// waits for something.
fn review<R: Reviewer>(
    reviewer: &R,
    path: &str,
    body: &[u8],
    now: Instant,
) -> Option<Result<String, Refusal>> {
    let limits = ServerLimits::default();
    let read = || {
        let (path, query) = path.split_once('?').map_or((path, None), |(a, b)| (a, Some(b)));
        let webhook = policy_path::webhook(path)?;
        let time = deadline::request_time(query, &limits)?;
        if body.len() > limits.body_bytes {
            return Err(Refusal::BodyTooLarge(limits.body_bytes));
        }
        Ok((webhook, time, AdmissionRequest::read(body)?))
    };
    let (webhook, time, request) = match read() {
        Ok(read) => read,
        Err(refusal) => return Some(Err(refusal)),
    };
    let uid = request.uid.clone();
    let running = pin!(reviewer.review(webhook.clone(), request, now + time));
    match running.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(answer::result(result, webhook, &uid)),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission_response::AdmissionResponse;
    use crate::reviewer::{Reviewed, WebhookRef};

    /// Does what the name of the module says.
    struct Named {
        now: Instant,
    }

    impl Reviewer for Named {
        async fn review(
            &self,
            webhook: WebhookRef,
            _: AdmissionRequest<'_>,
            deadline: Instant,
        ) -> Reviewed {
            match &*webhook.module {
                "allows" => Reviewed::Answer(AdmissionResponse::allowed()),
                "fails" => Reviewed::Failed("it broke".to_owned()),
                "late" => Reviewed::Overloaded(format!("{:?}", deadline - self.now)),
                "waits" => std::future::pending().await,
                _ => Reviewed::UnknownPolicy,
            }
        }
    }

    fn answer(path: &str, body: &[u8]) -> Option<(u16, String)> {
        let now = Instant::now();
        let answer = answer_in_process(&Named { now }, path, body, now);
        answer.map(|InProcessAnswer { status, body }| (status, body))
    }

    fn body() -> Vec<u8> {
        let group = json!({"group": "", "version": "v1", "kind": "Pod", "resource": "pods"});
        let request = json!({"uid": "u", "operation": "CREATE", "kind": group, "resource": group});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": request});
        review.to_string().into_bytes()
    }

    #[test]
    fn answer_in_process_is_that_of_the_server() {
        let sent = |path: &str| answer(path, &body());
        let (status, text) = sent("/v1/policies/allows/0").unwrap();
        let review: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &review["response"]), (200, &json!({"uid": "u", "allowed": true})));
        assert_eq!(sent("/v1/policies/fails/0"), Some((500, "it broke".to_owned())));
        assert_eq!(sent("/v1/policies/late/0?timeout=3s"), Some((503, "3s".to_owned())));
        assert_eq!(sent("/v1/policies/waits/0"), None);
        let (status, text) = sent("/v1/policies/other/1").unwrap();
        assert!(status == 404 && text.contains("Module \"other\" with index 1"), "{text}");
    }

    #[test]
    fn request_that_is_none_gets_a_status_and_no_review() {
        for (path, body, status) in [
            ("/v2", body(), 404),
            ("/v1/policies/allows/0?timeout=x", body(), 400),
            ("/v1/policies/allows/0", b"{}".to_vec(), 400),
            ("/v1/policies/allows/0", vec![b' '; (8 << 20) + 1], 413),
        ] {
            assert_eq!(answer(path, &body).unwrap().0, status, "{path}");
        }
    }
}
