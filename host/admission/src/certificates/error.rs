//! Why certificates cannot be made or read.

/// Why certificates cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Making one failed.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The Secret has no such member.
    #[error("the Secret has no {0}; delete the Secret, and the host makes a new one")]
    Missing(&'static str),
    /// A member of the Secret is not what it should be.
    #[error(
        "{name} of the Secret is invalid: {why}; delete the Secret, and the host makes a new one"
    )]
    Invalid {
        /// The member.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}
