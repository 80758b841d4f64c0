//! Kubeconfig files. Written as JSON, which every reader of YAML takes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Error;
use crate::certificates::ClientCertificate;

/// A kubeconfig with one cluster, one user and one context.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    cluster: Value,
    user: Value,
}

impl Kubeconfig {
    /// For the server at `url`, without any credentials yet. `ca_pem` is the authority
    /// that signed its certificate, absent for plain HTTP.
    pub fn new(url: &str, ca_pem: Option<&str>) -> Self {
        let mut cluster = json!({ "server": url });
        if let Some(pem) = ca_pem {
            cluster["certificate-authority-data"] = base64(pem.as_bytes()).into();
        }
        Self { cluster, user: json!({}) }
    }

    /// The user is the one of this bearer token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.user = json!({ "token": token });
        self
    }

    /// The user is the one of this client certificate.
    pub(crate) fn with_certificate(mut self, client: &ClientCertificate) -> Self {
        self.user = json!({
            "client-certificate-data": base64(client.certificate_pem.as_bytes()),
            "client-key-data": base64(client.key_pem.as_bytes()),
        });
        self
    }

    /// Writes the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "innkeeper", "cluster": self.cluster }],
            "users": [{ "name": "innkeeper", "user": self.user }],
            "contexts": [{
                "name": "innkeeper",
                "context": { "cluster": "innkeeper", "user": "innkeeper", "namespace": "default" },
            }],
            "current-context": "innkeeper",
        });
        fs::write(path, format!("{document:#}\n")).map_err(Error::file(path))
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
