//! Requests and responses, apart from HTTP.

use bytes::Bytes;
use serde_json::Value;

use crate::api::http::query::Query;
use crate::auth::impersonated_user::ImpersonatedUser;
use crate::auth::user::User;
use crate::state::store::text_of;
use crate::state::watch::Feed;
use crate::types::status_error::StatusError;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// In capital letters.
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) user: User,
    /// The user to impersonate, if any.
    pub(crate) acting: Option<ImpersonatedUser>,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    /// The `ETag` of the document that the client has, as `If-None-Match` names it.
    pub(crate) known: String,
    pub(crate) agent: String,
    pub(crate) body: Bytes,
}

/// A response.
#[derive(Debug)]
pub(crate) enum Response {
    /// A document.
    Json { code: u16, body: Bytes, warnings: Vec<String> },
    /// A document of another media type.
    Of { code: u16, kind: String, body: Bytes },
    /// A document that clients keep; `None`: the client has it already.
    Tagged { etag: String, kind: String, body: Option<Bytes> },
    /// A text.
    Text { code: u16, body: String },
    /// A stream of events.
    Watch(Feed),
}

impl Response {
    /// A document.
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::Json { code, body: text_of(value), warnings: Vec::new() }
    }

    /// A document that is a text already.
    pub(crate) fn bytes(code: u16, body: Bytes) -> Self {
        Self::Json { code, body, warnings: Vec::new() }
    }

    /// An error.
    pub(crate) fn error(error: &StatusError) -> Self {
        Self::json(error.code, &error.body())
    }

    /// The response for a path that is not served.
    pub(crate) fn page_not_found() -> Self {
        Self::Text { code: 404, body: "404 page not found\n".to_owned() }
    }
}
