//! The certificate of the server, its certificate authority, and the admin's token. Each server has
//! new ones, which only its kubeconfig contains.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// The names of the server in its certificate.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Length of the token in bytes, before the hex encoding.
const TOKEN_BYTES: usize = 24;

/// The credentials of a server and its admin.
pub(crate) struct Credentials {
    pub(crate) ca_pem: String,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) token: Token,
}

impl Credentials {
    /// Generates new credentials.
    ///
    /// # Errors
    /// If the system has no random bytes, or a certificate cannot be made.
    pub(crate) fn make() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "innkeeper-simulator-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(NAMES.map(String::from).to_vec())?;
        params.distinguished_name.push(DnType::CommonName, "innkeeper-simulator");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &ca)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { ca_pem: ca.pem(), acceptor, token: Token::make()? })
    }
}

/// The admin's token. Only a kubeconfig contains it.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    fn make() -> Result<Self, Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(Error::Random)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// The token as text, for the kubeconfig.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether `shown` is this token. Takes the same time wherever the two differ.
    pub(crate) fn is(&self, shown: &str) -> bool {
        let (own, shown) = (self.0.as_bytes(), shown.as_bytes());
        own.len() == shown.len()
            && own.iter().zip(shown).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_matches_itself_only() {
        let token = Token::make().unwrap();
        let other = Token::make().unwrap();
        assert!(token.is(token.text()));
        assert!(!token.is(other.text()) && !token.is("") && !token.is(&token.text()[1..]));
    }
}
