//! The certificate that the replicas serve.

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};

use super::error::CertificateError;
use super::validity::Validity;

/// The certificate that the replicas serve.
#[derive(Clone, PartialEq, Eq)]
pub struct ServingCertificate {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) validity: Validity,
    /// The names that a client may call the server by.
    pub(super) names: Vec<String>,
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate")
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

impl ServingCertificate {
    /// The certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its validity.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Identifies the certificate: 16 hexadecimal digits of its SHA-256.
    pub fn id(&self) -> String {
        hex::encode(&Sha256::digest(&self.certificate)[..8])
    }

    /// The certificate and its key, as rustls takes them.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn der(
        &self,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), CertificateError> {
        let invalid = |name: &'static str| {
            move |error: rustls_pki_types::pem::Error| CertificateError::Invalid {
                name,
                why: error.to_string(),
            }
        };
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        Ok((certificate.map_err(invalid("tls.crt"))?, key.map_err(invalid("tls.key"))?))
    }
}
