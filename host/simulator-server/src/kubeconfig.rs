//! The kubeconfig of a server and its file. The format is JSON, which every YAML parser reads.

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

/// A kubeconfig file. Dropping this value removes the file.
#[derive(Debug)]
pub struct KubeconfigFile {
    path: PathBuf,
}

impl KubeconfigFile {
    /// Writes a new file that only its owner may read.
    ///
    /// # Errors
    /// If the file exists already, or cannot be written.
    pub(crate) fn write(path: &Path, text: &str) -> Result<Self, Error> {
        let mut options = fs::OpenOptions::new();
        let mut file = match options.write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::KubeconfigExists(path.to_owned()));
            }
            Err(source) => return Err(Error::Kubeconfig { path: path.to_owned(), source }),
        };
        // Removes the file on drop from here on.
        let own = Self { path: path.to_owned() };
        file.write_all(text.as_bytes())
            .map_err(|source| Error::Kubeconfig { path: path.to_owned(), source })?;
        Ok(own)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // Somebody may have removed the file already.
        let _ = fs::remove_file(&self.path);
    }
}
