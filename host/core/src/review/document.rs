//! The `review-request` document.

use innkeeper_contract::{Operation, User};
use serde::Serialize;
use serde_json::value::RawValue;

use super::input::{Gvk, Gvr, ReviewInput};
use super::shown::shown;
use crate::foreign;
use crate::object::{DecodeError, SecretDigest};

/// How many bytes of the reason why an object cannot be read a message repeats.
const REASON_BYTES_MAX: usize = 300;

/// What a policy gets to review a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewDocument {
    /// The `review-request` document.
    pub text: String,
    /// The object in it, of which the object of a verdict is a change.
    pub object: Option<String>,
    /// The stored object in it.
    pub old_object: Option<String>,
}

/// Why a policy gets no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A part of the request cannot be read.
    #[error("`{member}` of the request cannot be shown to a policy: {reason}")]
    Unreadable {
        /// The member of the request.
        member: &'static str,
        /// Why not.
        reason: String,
    },
    /// The document would have more bytes than the guest's memory.
    #[error(
        "the review request has {bytes} bytes, and the guest has {limit} bytes of memory: raise spec.limits.memory"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl DocumentError {
    /// A word for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "RequestUnreadable",
            Self::TooLarge { .. } => "RequestTooLarge",
        }
    }
}

/// `innkeeper_contract::ReviewRequest`, with borrowed texts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    operation: Operation,
    kind: Gvk<'a>,
    resource: Gvr<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_kind: Option<Gvk<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_resource: Option<Gvr<'a>>,
    name: &'a str,
    namespace: &'a str,
    user: &'a User,
    object: Option<&'a RawValue>,
    old_object: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<&'a RawValue>,
    dry_run: bool,
    background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

/// Joins the `review-request` document of a request; `digest` replaces values of Secrets.
///
/// # Errors
/// If a part of the request cannot be read, or the document has more than `bytes_max` bytes.
pub fn document(
    input: &ReviewInput<'_>,
    digest: &SecretDigest<'_>,
    bytes_max: usize,
) -> Result<ReviewDocument, DocumentError> {
    let read = |member, object: Option<&RawValue>| -> Result<_, DocumentError> {
        let Some(object) = object else { return Ok(None) };
        let text = shown(input, object, digest).map_err(|error| undecoded(member, &error))?;
        RawValue::from_string(text).map(Some).map_err(|error| unreadable(member, &error))
    };
    let object = read("object", input.object)?;
    let old_object = read("oldObject", input.old_object)?;
    let parameters = match input.parameters {
        "" => None,
        text => Some(serde_json::from_str(text).map_err(|error| unreadable("parameters", &error))?),
    };
    let document = Document {
        operation: input.operation,
        kind: input.kind,
        resource: input.resource,
        subresource: input.subresource,
        request_kind: input.request_kind.filter(|kind| *kind != input.kind),
        request_resource: input.request_resource.filter(|one| *one != input.resource),
        name: input.name,
        namespace: input.namespace,
        user: input.user,
        object: object.as_deref(),
        old_object: old_object.as_deref(),
        options: input.options,
        dry_run: input.dry_run,
        background: input.background,
        parameters,
    };
    let text = serde_json::to_string(&document).map_err(|error| unreadable("request", &error))?;
    if text.len() > bytes_max {
        return Err(DocumentError::TooLarge { bytes: text.len(), limit: bytes_max });
    }
    let owned =
        |object: Option<Box<RawValue>>| object.map(|object| String::from(Box::<str>::from(object)));
    Ok(ReviewDocument { text, object: owned(object), old_object: owned(old_object) })
}

/// Names the kind of a problem and its place. The text of the error could quote a value.
fn unreadable(member: &'static str, error: &serde_json::Error) -> DocumentError {
    let problem = match error.classify() {
        serde_json::error::Category::Data => "a member has another type than Kubernetes gives it",
        _ => "it is no JSON",
    };
    let reason = format!("{problem} (line {}, column {})", error.line(), error.column());
    DocumentError::Unreadable { member, reason }
}

fn undecoded(member: &'static str, error: &DecodeError) -> DocumentError {
    match error {
        DecodeError::Json(error) => unreadable(member, error),
        other => {
            DocumentError::Unreadable { member, reason: foreign::one_line(other, REASON_BYTES_MAX) }
        }
    }
}

#[cfg(test)]
mod tests;
