//! The kubeconfig of a server, and the file that it lies in. Written as JSON, which every reader of
//! YAML takes.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::json;

use crate::Error;
use crate::credentials::Credentials;

/// The name of the cluster, the user and the context.
const NAME: &str = "innkeeper-simulator";

/// The text of a kubeconfig for the server at `url`.
pub(crate) fn text(url: &str, credentials: &Credentials) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(&credentials.ca_pem);
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": NAME, "cluster": { "server": url, "certificate-authority-data": ca } }],
        "users": [{ "name": NAME, "user": { "token": credentials.token.text() } }],
        "contexts": [{
            "name": NAME,
            "context": { "cluster": NAME, "user": NAME, "namespace": "default" },
        }],
        "current-context": NAME,
    });
    format!("{document:#}\n")
}

/// A kubeconfig that is removed when this value goes: its server has gone by then too.
#[derive(Debug)]
pub struct KubeconfigFile {
    path: PathBuf,
}

impl KubeconfigFile {
    /// Writes a file that was not there, for its owner only.
    pub(crate) fn write(path: &Path, text: &str) -> Result<Self, Error> {
        let mut options = fs::OpenOptions::new();
        let mut file = match options.write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::KubeconfigExists(path.to_owned()));
            }
            Err(source) => return Err(Error::Kubeconfig { path: path.to_owned(), source }),
        };
        // From here on it is ours to remove.
        let own = Self { path: path.to_owned() };
        file.write_all(text.as_bytes())
            .map_err(|source| Error::Kubeconfig { path: path.to_owned(), source })?;
        Ok(own)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // Whoever removed it already wanted the same.
        let _ = fs::remove_file(&self.path);
    }
}
