//! The requests that a client of a module refuses to send.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{ObjectKey, host_objects, object};

use super::ApiClient;
use crate::ApiError;
use crate::discovery::Discovery;
use crate::served_kind::ServedKind;

impl ApiClient {
    /// Makes the client one of a module, whose guest chooses kinds and names: the client compares
    /// each kind with discovery before a request names it, reads no Secret in Innkeeper's own
    /// namespaces, and writes no object of Innkeeper itself.
    #[must_use]
    pub fn for_module(self) -> Self {
        Self { for_module: true, ..self }
    }

    /// The discovery of the API server, shared by all clients.
    pub fn discovery(&self) -> &Arc<Discovery> {
        &self.discovery
    }

    /// Compares a kind with an answer of discovery that is at most `age` old. A client of the host
    /// itself compares nothing.
    ///
    /// # Errors
    /// If discovery does not answer.
    pub(crate) async fn served(&self, kind: &Kind, age: Duration) -> Result<ServedKind, ApiError> {
        if self.for_module {
            self.discovery.check(kind, age).await
        } else {
            Ok(ServedKind::AsDeclared)
        }
    }

    /// Whether the group of a kind may have changed since the last answer of discovery.
    pub(crate) async fn may_have_changed(&self, kind: &Kind) -> bool {
        self.for_module && self.discovery.may_have_changed(kind).await
    }

    /// Refuses a mismatched kind. The server itself refuses one that it does not serve.
    ///
    /// # Errors
    /// [`ApiError::KindMismatch`], or the error of discovery.
    pub(super) async fn check_kind(&self, kind: &Kind) -> Result<(), ApiError> {
        match self.served(kind, Duration::MAX).await? {
            ServedKind::AsDeclared | ServedKind::NotServed => Ok(()),
            ServedKind::Mismatched(mismatch) => {
                Err(ApiError::KindMismatch { mismatch: Box::new(mismatch) })
            }
        }
    }

    /// Whether an object belongs to Innkeeper itself: no module reconciles or writes it.
    pub fn is_reserved(&self, kind: &Kind, key: &ObjectKey) -> bool {
        host_objects::is_object_of(kind, key, self.host_namespace())
    }

    /// The namespace in which the host itself runs, if the host knows it.
    pub fn host_namespace(&self) -> Option<&str> {
        self.secrets.namespace()
    }

    /// Whether a namespace is Innkeeper's own: by its well-known name, or as the host's namespace.
    fn is_reserved_namespace(&self, namespace: &str) -> bool {
        host_objects::is_namespace_of(namespace, self.host_namespace())
    }

    /// Whether this client hides an object: a Secret of the host, such as the key of the digests.
    pub(crate) fn hides(&self, kind: &Kind, key: &ObjectKey) -> bool {
        self.for_module
            && object::holds_secrets(kind)
            && self.is_reserved_namespace(key.namespace())
    }

    /// Refuses a write to an object that belongs to Innkeeper itself.
    ///
    /// # Errors
    /// [`ApiError::Invalid`].
    pub(super) fn check_write(&self, kind: &Kind, key: &ObjectKey) -> Result<(), ApiError> {
        if self.for_module && self.is_reserved(kind, key) {
            let message =
                format!("{} {key} belongs to Innkeeper itself: no module writes it", kind.kind);
            return Err(ApiError::Invalid { message });
        }
        Ok(())
    }
}
