//! The errors of the server.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server cannot start, or its kubeconfig cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another port, or 0 for a free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The certificates cannot be made.
    #[error("cannot make the certificates of the simulated cluster: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The certificates cannot be used.
    #[error("cannot use the certificates of the simulated cluster: {0}")]
    Tls(#[from] rustls::Error),
    /// The system gives no random bytes for the token.
    #[error("cannot read random bytes for the token from the system: {0}")]
    Random(getrandom::Error),
    /// The system gives no thread for the server.
    #[error("cannot start a thread for the simulated cluster: {0}")]
    Runtime(std::io::Error),
    /// The kubeconfig exists and may belong to the user.
    #[error("kubeconfig {} exists already; choose another file, or remove it", .0.display())]
    KubeconfigExists(PathBuf),
    /// The kubeconfig cannot be written.
    #[error("cannot write the kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}
