//! The key of the digests of Secrets, in a Secret of the host, so that digests stay the same over
//! restarts and between replicas.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use serde_json::json;

use crate::{ApiClient, ApiError, SecretDigestKey};

/// The name of the Secret that holds the key.
pub const HOST_KEY_SECRET: &str = "innkeeper-digest-key";

/// The key of the Secret's `data`.
const MEMBER: &str = "key";

/// The shortest key, in bytes.
const KEY_BYTES_MIN: usize = 16;

/// The reason why the host has no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostKeyError {
    /// The host can neither read nor create the Secret.
    #[error(
        "the Secret {namespace}/{HOST_KEY_SECRET} (the key of the digests of Secrets): {error}"
    )]
    Api {
        /// The namespace.
        namespace: String,
        /// The error of the request.
        error: ApiError,
    },
    /// The Secret holds no valid key.
    #[error(
        "the Secret {namespace}/{HOST_KEY_SECRET} holds no key of at least {KEY_BYTES_MIN} bytes as `{MEMBER}`; delete it, and the host makes a new one: it then deletes the primary revisions of the old key"
    )]
    Malformed {
        /// The namespace.
        namespace: String,
    },
}

impl HostKeyError {
    /// Whether the same call may succeed later: the server is unavailable or busy.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Api { error, .. } if error.is_transient())
    }
}

#[derive(serde::Deserialize)]
struct Secret {
    #[serde(default)]
    data: std::collections::BTreeMap<String, String>,
}

/// Reads the host's key, or creates it from `fresh` (random bytes) if there is none. If several
/// hosts create it at once, all of them get the first one's key.
///
/// # Errors
/// [`HostKeyError`] if the host can neither read nor create the Secret, or it holds no valid key.
pub async fn host_key(
    client: &ApiClient,
    namespace: &str,
    fresh: &[u8; 32],
) -> Result<SecretDigestKey, HostKeyError> {
    let kind = Kind::namespaced("v1", "Secret", "secrets");
    let key = ObjectKey::new(namespace, HOST_KEY_SECRET);
    let api = |error| HostKeyError::Api { namespace: namespace.to_owned(), error };
    let found: Secret = match client.get_as(&kind, &key).await {
        Ok(found) => found,
        Err(ApiError::NotFound { .. }) => {
            let body = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": HOST_KEY_SECRET, "namespace": namespace },
                "immutable": true,
                "type": "Opaque",
                "data": { MEMBER: STANDARD.encode(fresh) },
            });
            // The Secret never changes: an apply would need more rights than a create.
            match client.create(&kind, namespace, &body).await {
                Ok(()) | Err(ApiError::AlreadyExists { .. } | ApiError::OutcomeUnknown { .. }) => {}
                Err(error) => return Err(api(error)),
            }
            client.get_as(&kind, &key).await.map_err(api)?
        }
        Err(error) => return Err(api(error)),
    };
    let bytes = found.data.get(MEMBER).and_then(|text| STANDARD.decode(text).ok());
    match bytes {
        Some(bytes) if bytes.len() >= KEY_BYTES_MIN => {
            Ok(SecretDigestKey::new(&bytes).kept_in(namespace))
        }
        _ => Err(HostKeyError::Malformed { namespace: namespace.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::scripted::{Reply, Server, status};

    const GET: &str = "GET /api/v1/namespaces/sys/secrets/innkeeper-digest-key";
    const POST: &str = "POST /api/v1/namespaces/sys/secrets";

    fn absent() -> Reply {
        let details = json!({ "name": HOST_KEY_SECRET, "kind": "secrets" });
        Reply::Json(404, status(404, "NotFound", "not found", &details))
    }

    fn secret(key: &[u8]) -> Reply {
        Reply::Json(200, json!({ "data": { "key": STANDARD.encode(key) } }))
    }

    /// A digest, which depends on the key.
    fn digest(key: &SecretDigestKey) -> String {
        key.digest(&ObjectKey::new("n", "s"), "a", "b")
    }

    async fn key(server: &Server) -> Result<String, HostKeyError> {
        let key = host_key(&server.cluster().host(), "sys", &[7; 32]).await?;
        Ok(digest(&key))
    }

    #[tokio::test(start_paused = true)]
    async fn existing_key_is_used() {
        let server = Server::new();
        server.always(GET, secret(&[1; 32]));
        assert_eq!(key(&server).await.unwrap(), digest(&SecretDigestKey::new(&[1; 32])));
        assert_eq!(server.count("POST"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn key_created_by_another_host_first_is_used() {
        let server = Server::new();
        server.once(GET, absent());
        server.always(POST, Reply::Json(409, status(409, "AlreadyExists", "there", &Value::Null)));
        server.always(GET, secret(&[2; 32]));
        assert_eq!(key(&server).await.unwrap(), digest(&SecretDigestKey::new(&[2; 32])));
        assert_eq!(server.count("POST"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn invalid_key_is_permanent_and_unreachable_server_is_transient() {
        let server = Server::new();
        server.always(GET, secret(b"short"));
        let error = key(&server).await.unwrap_err();
        assert_eq!(error, HostKeyError::Malformed { namespace: "sys".into() });
        assert!(!error.is_transient());
        server.always(GET, Reply::Refused);
        let error = key(&server).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().starts_with("the Secret sys/innkeeper-digest-key"), "{error}");
    }
}
