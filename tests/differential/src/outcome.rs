//! What an answer of a real server says about its request: one that only says how slow the server
//! is must not decide a test.

use http::{Method, Uri};

use crate::server::{Failure, Reply};

/// How often a case is run, each time in another place, if the outcome of a write stays unknown.
pub const ATTEMPTS: usize = 5;

/// What an answer says about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server has answered the request.
    Answered,
    /// The server has done nothing yet: the same request gets an answer later.
    Busy,
    /// The server or its etcd was too slow, and the request writes nothing.
    TooSlow,
    /// The server or its etcd was too slow, and nobody knows whether the write happened.
    Unknown,
}

/// The outcome of a write is unknown: the case cannot go on here, and is run elsewhere.
#[derive(Debug)]
pub struct OutcomeUnknown(pub(crate) String);

impl std::fmt::Display for OutcomeUnknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nobody knows whether the real server has written: {}", self.0)
    }
}

impl std::error::Error for OutcomeUnknown {}

/// Whether a case failed only because the outcome of a write is unknown.
pub fn is_unknown(failure: &Failure) -> bool {
    failure.is::<OutcomeUnknown>()
}

/// Texts of etcd about itself, which the API server passes on with the code 500.
const ETCD: [&str; 3] =
    ["etcdserver: request timed out", "etcdserver: leader changed", "etcdserver: no leader"];

/// The text of the API server about a request that took too long, with the code 504. A version that
/// is too large, and a webhook that does not answer, have other texts: these are answers.
const TIMEOUT: &str = "request did not complete within";

impl Outcome {
    /// What a reply to a request says.
    pub(crate) fn of(method: &Method, uri: &Uri, reply: &Reply) -> Self {
        let message = reply.body["message"].as_str().unwrap_or_default();
        if reply.code == 429 && message.contains("storage is (re)initializing") {
            return Self::Busy;
        }
        let is_slow = match reply.code {
            500 => ETCD.into_iter().any(|text| message.contains(text)),
            504 => message.contains(TIMEOUT),
            _ => false,
        };
        match is_slow {
            false => Self::Answered,
            true if method.is_safe() || is_dry_run(uri) => Self::TooSlow,
            true => Self::Unknown,
        }
    }
}

fn is_dry_run(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part == "dryRun=All"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MAPS: &str = "https://server/api/v1/namespaces/n/configmaps";

    fn outcome(method: &Method, uri: &str, code: u16, body: Value) -> Outcome {
        let reply = Reply { code, body, warnings: Vec::new() };
        Outcome::of(method, &uri.parse().unwrap(), &reply)
    }

    fn message(text: &str) -> Value {
        json!({"kind": "Status", "message": text})
    }

    #[test]
    fn slow_read_is_repeated_and_slow_write_is_unknown() {
        for (code, text) in [
            (500, "etcdserver: request timed out"),
            (500, "rpc error: code = Unavailable desc = etcdserver: request timed out"),
            (500, "etcdserver: request timed out, possibly due to previous leader failure"),
            (500, "etcdserver: leader changed"),
            (
                504,
                "Timeout: request did not complete within requested timeout - context deadline exceeded",
            ),
            (504, "request did not complete within the allotted timeout"),
        ] {
            let of = |method, uri: &str| outcome(&method, uri, code, message(text));
            assert_eq!(of(Method::GET, MAPS), Outcome::TooSlow, "{text}");
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                assert_eq!(of(method.clone(), MAPS), Outcome::Unknown, "{method} {text}");
                let tried = format!("{MAPS}?fieldManager=a&dryRun=All");
                assert_eq!(of(method.clone(), &tried), Outcome::TooSlow, "{method} {text}");
                let forged = format!("{MAPS}?fieldManager=dryRun=All");
                assert_eq!(of(method, &forged), Outcome::Unknown, "{text}");
            }
        }
    }

    #[test]
    fn server_whose_cache_begins_is_busy_for_every_request() {
        let body = message("storage is (re)initializing");
        for method in [Method::GET, Method::POST] {
            assert_eq!(outcome(&method, MAPS, 429, body.clone()), Outcome::Busy);
        }
    }

    #[test]
    fn answers_that_resemble_a_timeout_are_answers() {
        for (code, body) in [
            (200, message("etcdserver: request timed out")),
            (201, json!({"data": {"message": "etcdserver: request timed out"}})),
            (422, message("etcdserver: request timed out")),
            (500, message("a strategic patch that does not fit")),
            (500, json!("etcdserver: request timed out")),
            (504, message("Timeout: Too large resource version: 9, current: 1")),
            (500, message("failed calling webhook \"a\": context deadline exceeded")),
            (429, message("Cannot evict pod as it would violate the pod's disruption budget.")),
            (429, json!("Too many requests, please try again later.")),
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(outcome(&method, MAPS, code, body.clone()), Outcome::Answered, "{body}");
            }
        }
    }
}
