//! What can go wrong with serving.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server could not start, or its kubeconfig not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: {source}; name another port, or 0 for any that is free")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("cannot make the certificates of the simulated cluster: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The certificates could not be used.
    #[error("cannot use the certificates of the simulated cluster: {0}")]
    Tls(#[from] rustls::Error),
    /// The machine gave no random bytes for the token.
    #[error("this machine gives no random bytes for the token: {0}")]
    Random(getrandom::Error),
    /// The kubeconfig exists, and may be somebody's.
    #[error("{} exists already, and is left as it is: name a file that does not, or remove it", .0.display())]
    KubeconfigExists(PathBuf),
    /// The kubeconfig could not be written.
    #[error("cannot write the kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
