//! One request and response, without a watch.

use http::{Method, Request, header};

use crate::ApiError;
use crate::error::RequestContext;

/// A request, and the context by which its response is classified.
pub(super) struct PendingRequest<'a> {
    pub(super) context: RequestContext<'a>,
    pub(super) request: Request<Vec<u8>>,
    /// Sending it twice does the same as sending it once.
    pub(super) repeatable: bool,
}

/// Builds a request that accepts JSON; `content_type` is empty if there is no body.
///
/// # Errors
/// [`ApiError::Invalid`] for a path that is no URI.
pub(super) fn request(
    method: Method,
    path: &str,
    query: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, ApiError> {
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let mut request =
        Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    if !content_type.is_empty() {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request.body(body).map_err(|error| ApiError::Invalid {
        message: format!("{path} is no path of an API server: {error}"),
    })
}
