//! TLS: the present serving certificate, and the certificates of clients.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DEFAULT_VERSIONS, RootCertStore};
use tokio::sync::watch;

use crate::certificates::{CertificateError, ServingCertificate};

/// A serving certificate that handshakes can use: its key fits.
#[derive(Clone, Debug)]
pub struct TlsCertificate(Arc<CertifiedKey>);

impl TlsCertificate {
    /// Checks a certificate. A caller keeps the previous one in use if this one is invalid.
    ///
    /// # Errors
    /// If the certificate or its key cannot be read, or they do not belong together.
    pub fn new(serving: &ServingCertificate) -> Result<Self, CertificateError> {
        let (certificate, key) = serving.der()?;
        let key = CertifiedKey::from_der(vec![certificate], key, &ring::default_provider());
        let invalid = |error: rustls::Error| CertificateError::Invalid {
            name: "tls.key",
            why: error.to_string(),
        };
        Ok(Self(Arc::new(key.map_err(invalid)?)))
    }
}

/// Why the server cannot use TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The authorities of clients cannot be used.
    #[error("cannot read the certificate authority of clients: {0}; give certificates as PEM")]
    ClientAuthority(String),
    /// A configuration that rustls refuses.
    #[error("cannot configure TLS: {0}; report a bug of Innkeeper")]
    Configuration(#[from] rustls::Error),
}

/// Gives each handshake the certificate that the watch has then.
#[derive(Debug)]
struct Current(watch::Receiver<TlsCertificate>);

impl ResolvesServerCert for Current {
    // For any server name: a client checks the name itself.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow().0))
    }
}

pub(super) fn tls_config(
    certificate: watch::Receiver<TlsCertificate>,
    client_authority: Option<&str>,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(DEFAULT_VERSIONS)?;
    let builder = match client_authority {
        None => builder.with_no_client_auth(),
        Some(pem) => builder.with_client_cert_verifier(client_verifier(pem, provider)?),
    };
    let mut config = builder.with_cert_resolver(Arc::new(Current(certificate)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // The API server resumes no session, so that tickets would only cost time and memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_verifier(
    pem: &str,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let invalid = |why: String| TlsError::ClientAuthority(why);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
    }
    // rustls refuses an empty store with a reason.
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().map_err(|error| invalid(error.to_string())).map(|verifier| verifier as _)
}
