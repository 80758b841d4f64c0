//! Deletes of one object.

use http::Method;
use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use serde::Deserialize;
use serde_json::json;

use super::ApiClient;
use super::request::{PendingRequest, request};
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::resource_path;

/// When the garbage collector deletes the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// After their owner.
    Background,
    /// Before their owner.
    Foreground,
    /// Never: they stay.
    Orphan,
}

impl Propagation {
    /// The value of `propagationPolicy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The result of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object does not exist any more.
    Removed,
    /// The object waits for finalizers or for its grace period.
    Terminating(Box<Object>),
}

/// The kind of a response: a `Status`, or the deleted object.
#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

impl ApiClient {
    /// Deletes the object with this uid, and no other of its name: another one is answered by
    /// [`ApiError::UidMismatch`]. A missing object is [`Deleted::Removed`].
    ///
    /// # Errors
    /// [`ApiError::UidMismatch`], [`ApiError::Invalid`] for an object of Innkeeper itself, and
    /// those of any request.
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        propagation: Propagation,
    ) -> Result<Deleted, ApiError> {
        self.check_write(kind, key)?;
        self.check_kind(kind).await?;
        let context = self.context("delete", kind, "", key.namespace(), Guard::Uid);
        let path = resource_path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": uid },
            "propagationPolicy": propagation.as_str(),
        });
        let body = body.to_string().into_bytes();
        let request = request(Method::DELETE, &path, "", "application/json", body)?;
        let pending = PendingRequest { context: context.clone(), request, repeatable: true };
        let text = match self.exchange(pending).await {
            Ok((_, text)) => text,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => {
                return Ok(Deleted::Removed);
            }
            Err(error) => return Err(error),
        };
        let response: ResponseKind =
            serde_json::from_str(&text).map_err(|error| context.unreadable(&error))?;
        if response.kind == "Status" {
            return Ok(Deleted::Removed);
        }
        let object = self.decode(kind, &text).map_err(|error| context.unreadable(&error))?;
        Ok(match object.deletion_timestamp {
            Some(_) => Deleted::Terminating(Box::new(object)),
            // For some kinds the server answers with the last state of the removed object.
            None => Deleted::Removed,
        })
    }
}
