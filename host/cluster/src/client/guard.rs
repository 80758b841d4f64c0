//! What a session that acts for a module refuses before a request is sent.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{ObjectKey, host_objects, object};

use super::ApiClient;
use crate::ApiError;
use crate::discovery::Discovery;
use crate::served_kind::ServedKind;

impl ApiClient {
    /// The same for what a guest declares and wants: each kind is compared with discovery before a
    /// request names it, Secrets in Innkeeper's own namespaces are not read, and objects that
    /// belong to Innkeeper itself are not written.
    #[must_use]
    pub fn for_module(self) -> Self {
        Self { for_module: true, ..self }
    }

    /// What the API server serves.
    pub fn discovery(&self) -> &Arc<Discovery> {
        &self.discovery
    }

    /// How the API server serves a kind, by an answer at most `age` old. A kind that the host
    /// itself names is taken as it is.
    ///
    /// # Errors
    /// If discovery gives no answer.
    pub(crate) async fn served(&self, kind: &Kind, age: Duration) -> Result<ServedKind, ApiError> {
        if self.for_module {
            self.discovery.check(kind, age).await
        } else {
            Ok(ServedKind::AsDeclared)
        }
    }

    /// Whether what is served of a kind's group may have changed since it was last asked for.
    pub(crate) async fn may_have_changed(&self, kind: &Kind) -> bool {
        self.for_module && self.discovery.may_have_changed(kind).await
    }

    /// Refuses a kind that is served otherwise. One that is not served is the server's to refuse.
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

    /// The namespace in which the host itself runs, as far as it is known.
    pub fn host_namespace(&self) -> Option<&str> {
        self.secrets.namespace()
    }

    /// The namespaces are known by name; the host's own may have another one.
    fn is_reserved_namespace(&self, namespace: &str) -> bool {
        host_objects::is_namespace_of(namespace, self.host_namespace())
    }

    /// Whether an object is kept from this session: a Secret of the host, such as the key of the
    /// digests.
    pub(crate) fn hides(&self, kind: &Kind, key: &ObjectKey) -> bool {
        self.for_module
            && object::holds_secrets(kind)
            && self.is_reserved_namespace(key.namespace())
    }

    /// Refuses a write to an object that belongs to Innkeeper itself.
    pub(super) fn check_write(&self, kind: &Kind, key: &ObjectKey) -> Result<(), ApiError> {
        if self.for_module && self.is_reserved(kind, key) {
            let message =
                format!("{} {key} belongs to Innkeeper itself: no module writes it", kind.kind);
            return Err(ApiError::Invalid { message });
        }
        Ok(())
    }
}
