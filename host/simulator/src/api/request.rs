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

    /// The OpenAPI v2 document: what kubectl falls back to for kinds that no OpenAPI v3 document
    /// names. It names none either.
    pub(crate) fn no_definitions() -> Self {
        // In protobuf: swagger "2.0", and the title and version of the info.
        let document = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.4";
        let kind = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf".to_owned();
        Self::Of { code: 200, kind, body: Bytes::from_static(document) }
    }

    /// The response for a path that is not served.
    pub(crate) fn page_not_found() -> Self {
        Self::Text { code: 404, body: "404 page not found\n".to_owned() }
    }
}
