//! The certificates of the admission server, in a Secret of the host.
//!
//! All replicas show the same certificate, so that it does not matter which one the API server
//! reaches. Only the leader changes the Secret.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_admission::certificates::{CertificateError, Certificates};
use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::Kind;
use innkeeper_core::host_objects::HOST_NAMESPACE;
use innkeeper_core::{Manager, ObjectKey};
use serde::Deserialize;
use serde_json::{Value, json};

/// The name of the Secret, in the namespace of the host.
pub const SECRET_NAME: &str = "innkeeper-admission";

/// Why the certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateStoreError {
    /// A request fails.
    #[error("the Secret {SECRET_NAME} with the certificates: {0}")]
    Api(#[from] ApiError),
    /// The Secret has other contents, or none can be made.
    #[error("the certificates in the Secret {SECRET_NAME}: {0}")]
    Certificates(#[from] CertificateError),
}

/// The Secret with the certificates.
#[derive(Clone)]
pub struct CertificateStore {
    host: ApiClient,
    key: ObjectKey,
}

/// The certificates as they were read.
#[derive(Clone, Debug)]
pub struct StoredCertificates {
    /// The certificates.
    pub certificates: Certificates,
    version: String,
    members: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

fn kind() -> Kind {
    Kind::namespaced("v1", "Secret", "secrets")
}

impl CertificateStore {
    /// The Secret in the namespace of the host, which is read and written as the host.
    pub fn new(host: ApiClient) -> Self {
        let key = ObjectKey::new(host.host_namespace().unwrap_or(HOST_NAMESPACE), SECRET_NAME);
        Self { host, key }
    }

    /// Reads the certificates; `None` if there is no Secret.
    ///
    /// # Errors
    /// If the request fails, or the Secret does not have what the host writes into it.
    pub async fn read(&self) -> Result<Option<StoredCertificates>, CertificateStoreError> {
        let secret: Secret = match self.host.get_as(&kind(), &self.key).await {
            Ok(secret) => secret,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut data = BTreeMap::new();
        for (name, text) in &secret.data {
            // The error does not repeat the text, which may be a key.
            let bytes = STANDARD.decode(text).map_err(|_| CertificateError::Invalid {
                name: "a member",
                why: "it is no base64".to_owned(),
            })?;
            data.insert(name.clone(), bytes);
        }
        Ok(Some(StoredCertificates {
            certificates: Certificates::from_secret_data(&data)?,
            version: secret.metadata.resource_version,
            members: secret.data.into_keys().collect(),
        }))
    }

    /// Writes the first certificates, unless somebody else has just done so.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn create(&self, certificates: &Certificates) -> Result<(), CertificateStoreError> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": self.key.name(), "namespace": self.key.namespace() },
            "type": "Opaque",
            "data": members(certificates),
        });
        match self.host.create(&kind(), self.key.namespace(), &body).await {
            Ok(()) | Err(ApiError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes certificates over those that were read.
    ///
    /// # Errors
    /// If the request fails, or the Secret has changed meanwhile.
    pub async fn replace(
        &self,
        stored: &StoredCertificates,
        next: &Certificates,
    ) -> Result<(), CertificateStoreError> {
        let mut data = members(next);
        for name in &stored.members {
            // A merge patch removes a member by null.
            data.entry(name.clone()).or_insert(Value::Null);
        }
        let body = json!({
            "metadata": { "resourceVersion": stored.version },
            "data": data,
        });
        self.host.merge_patch(&kind(), &self.key, &Manager::Host, &body).await?;
        Ok(())
    }
}

/// The `data` of the Secret.
fn members(certificates: &Certificates) -> BTreeMap<String, Value> {
    let encode = |(name, text): (String, String)| (name, STANDARD.encode(text).into());
    certificates.secret_data().into_iter().map(encode).collect()
}
