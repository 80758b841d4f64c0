//! Lists of an API server that is frozen.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

use crate::body::AnswerBody;

/// What a frozen API server does with a list.
pub(crate) enum FrozenList {
    /// It lists the state at its version.
    At(Request<Bytes>),
    /// The storage answers, which is not frozen: the client wants the most recent state.
    Recent(Request<Bytes>),
    /// The client wants a state that the API server does not have yet.
    TooNew,
}

/// Decides about a list at an API server that shows a kind at a version. A list with the version 0
/// takes whatever the cache has, one without a version the most recent state.
///
/// # Errors
/// If the request has no URI any more, which cannot be.
pub(crate) fn frozen_list(
    request: Request<Bytes>,
    frozen: u64,
) -> Result<FrozenList, http::uri::InvalidUri> {
    let uri = request.uri().clone();
    let pairs: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    let value = |name: &str| {
        let value = pairs.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default()
    };
    let version = value("resourceVersion");
    let is_exact = value("resourceVersionMatch") == "Exact" || !value("continue").is_empty();
    if version.is_empty() || is_exact {
        return Ok(FrozenList::Recent(request));
    }
    if version.parse::<u64>().is_ok_and(|version| version > frozen) {
        return Ok(FrozenList::TooNew);
    }
    let kept = pairs.iter().filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        // A cache has no pages.
        !matches!(name, "" | "resourceVersion" | "resourceVersionMatch" | "limit")
    });
    let own = format!("resourceVersion={frozen}&resourceVersionMatch=Exact");
    let query = kept.copied().chain([own.as_str()]).collect::<Vec<_>>().join("&");
    let mut request = request;
    *request.uri_mut() = format!("{}?{query}", uri.path()).parse()?;
    Ok(FrozenList::At(request))
}

/// The answer to a list of a version that the API server does not have yet.
pub(crate) fn too_new() -> Response<AnswerBody> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": "Timeout", "code": 504, "message": "Too large resource version",
        "details": {"retryAfterSeconds": 1, "causes": [
            {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}});
    let body = Full::from(status.to_string()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::GATEWAY_TIMEOUT;
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    headers.insert("retry-after", http::HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]
mod tests {
    use super::*;

    fn list(query: &str) -> FrozenList {
        let request = Request::builder().uri(format!("/api/v1/pods{query}")).body(Bytes::new());
        frozen_list(request.unwrap(), 7).unwrap()
    }

    #[test]
    fn list_of_the_cache_has_the_frozen_version_and_a_consistent_list_the_recent_one() {
        for query in ["?resourceVersion=0", "?limit=500&resourceVersion=0", "?resourceVersion=7"] {
            let FrozenList::At(request) = list(query) else { panic!("{query}") };
            let expected = "resourceVersion=7&resourceVersionMatch=Exact";
            assert_eq!(request.uri().query(), Some(expected), "{query}");
        }
        for query in ["", "?limit=500", "?resourceVersion=3&resourceVersionMatch=Exact"] {
            assert!(matches!(list(query), FrozenList::Recent(_)), "{query}");
        }
        assert!(matches!(list("?resourceVersion=8"), FrozenList::TooNew));
        assert_eq!(too_new().status(), 504);
    }
}
