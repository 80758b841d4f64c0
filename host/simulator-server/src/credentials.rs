//! The certificate of the server, the authority that signed it, and the admin's token. All are made
//! anew for each server and are nowhere but in its kubeconfig.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// Under which names the server is reached.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Length of the token before it is written in hex.
const TOKEN_BYTES: usize = 24;

/// What a server shows, and what it wants to be shown.
pub(crate) struct Credentials {
    pub(crate) ca_pem: String,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) token: Token,
}

impl Credentials {
    /// Makes them.
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

/// The admin's token. It is printed nowhere but in a kubeconfig.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    fn make() -> Result<Self, Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(Error::Random)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// For the kubeconfig.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether `shown` is this one; how long that takes does not tell where it differs.
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
    fn a_token_is_itself_and_no_other() {
        let token = Token::make().unwrap();
        let other = Token::make().unwrap();
        assert!(token.is(token.text()));
        assert!(!token.is(other.text()) && !token.is("") && !token.is(&token.text()[1..]));
    }
}
