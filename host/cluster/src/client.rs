//! Requests as one identity: [`ApiClient`].
//!
//! One file per request: `read`, `apply`, `json_patch`, `delete`, `create`, `pages` (lists in
//! pages), `access` (rights of this identity), `openapi` (published schemas) and `reviews` (tokens
//! and rights of other users). `guard` has the requests that a client of a module refuses.

mod access;
mod apply;
mod create;
mod delete;
mod guard;
mod json_patch;
mod openapi;
mod pages;
mod read;
mod request;
mod reviews;

use std::fmt;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use innkeeper_contract::Kind;
use innkeeper_core::object::DecodeError;
use innkeeper_core::{Object, ObjectKey};
use kube::client::Body;

use crate::discovery::Discovery;
use crate::error::{Guard, RequestContext};
use crate::transport::{BoundedBody, NoAnswer, Repeatable, Transport};
use crate::{ApiError, Env, Identity, SecretDigestKey, Settings};

pub use apply::{ApplyResponse, DryRun, Force};
pub use delete::{Deleted, Propagation};
pub use pages::Page;
use request::PendingRequest;
pub use reviews::User;

/// Requests as one identity, over the shared connections. Cheap to clone.
///
/// Every request is bounded in time. The transport repeats it where that is safe (see
/// [`Settings`]), so a caller gets an error only after the repeats.
#[derive(Clone)]
pub struct ApiClient {
    transport: Transport,
    identity: Identity,
    env: Env,
    settings: Settings,
    secrets: SecretDigestKey,
    discovery: Arc<Discovery>,
    /// A guest chooses the kinds and names of the requests.
    for_module: bool,
}

impl ApiClient {
    pub(crate) fn new(
        transport: Transport,
        identity: Identity,
        env: Env,
        settings: Settings,
        secrets: SecretDigestKey,
        discovery: Arc<Discovery>,
    ) -> Self {
        Self { transport, identity, env, settings, secrets, discovery, for_module: false }
    }

    /// The identity that the requests carry.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Clock, timers, randomness and spawning.
    pub fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The digest of a text that is no value of a Secret, under the key of the host, see
    /// [`SecretDigestKey::digest_text`].
    pub fn digest_text(&self, purpose: &str, text: &str) -> String {
        self.secrets.digest_text(purpose, text)
    }

    /// The digest in place of one value of a Secret, as caches and reads have it, see
    /// [`SecretDigestKey::digest`].
    pub fn digest_value(&self, secret: &ObjectKey, name: &str, value: &str) -> String {
        self.secrets.digest(secret, name, value)
    }

    /// Sends a request unchanged, and gives the status and the body of the response, also of an
    /// error: for tools that take any object.
    ///
    /// # Errors
    /// [`ApiError::Unavailable`] if the server sends no response.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<(StatusCode, Vec<u8>), ApiError> {
        let silent = |message: String| ApiError::Unavailable { message };
        let response = self.transport.send(request.map(Body::from)).await;
        let response = response.map_err(|error| silent(error.to_string()))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| silent(error.to_string()))?;
        Ok((parts.status, body.to_bytes().into()))
    }

    fn context<'a>(
        &'a self,
        verb: &'a str,
        kind: &'a Kind,
        subresource: &'a str,
        namespace: &'a str,
        guard: Guard,
    ) -> RequestContext<'a> {
        RequestContext { identity: &self.identity, verb, kind, subresource, namespace, guard }
    }

    /// Decodes an object of the server, with digests in place of a Secret's values.
    ///
    /// # Errors
    /// [`DecodeError`] for a text that is no object of this kind, or of another scope.
    pub(crate) fn decode(&self, kind: &Kind, text: &str) -> Result<Object, DecodeError> {
        let digest =
            |key: &ObjectKey, name: &str, value: &str| self.secrets.digest(key, name, value);
        let object = Object::decode(kind, text, Some(&digest))?;
        // The namespace of the stored primary decides which objects it may own.
        if self.for_module && object.key.namespace().is_empty() == kind.is_namespaced() {
            return Err(DecodeError::OtherScope {
                namespace: object.key.namespace().into(),
                requested: kind.to_string().into(),
                scope: if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
            });
        }
        Ok(object)
    }

    /// Sends a request, and gives the status and the text of a successful response.
    async fn exchange(
        &self,
        pending: PendingRequest<'_>,
    ) -> Result<(StatusCode, String), ApiError> {
        let PendingRequest { context, request, repeatable } = pending;
        let mut request = request.map(Body::from);
        if repeatable {
            request.extensions_mut().insert(Repeatable);
        }
        let response = self.transport.send(request).await;
        let response = response.map_err(|error| context.unanswered(error))?;
        Self::text(&context, response).await
    }

    /// The status and the text of a successful response.
    async fn text(
        context: &RequestContext<'_>,
        response: Response<BoundedBody>,
    ) -> Result<(StatusCode, String), ApiError> {
        let (parts, body) = response.into_parts();
        let body = body.collect().await;
        let bytes = body.map_err(|error| context.unanswered(NoAnswer::of(&*error)))?.to_bytes();
        if !parts.status.is_success() {
            return Err(context.refused(parts.status.as_u16(), &bytes));
        }
        let text = String::from_utf8(bytes.into()).map_err(|error| context.unreadable(&error))?;
        Ok((parts.status, text))
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiClient({})", self.identity)
    }
}
