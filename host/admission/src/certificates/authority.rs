//! A certificate authority of the host's own.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::OffsetDateTime;

use super::error::CertificateError;
use super::serving::Serving;
use super::validity::{CLOCK_DIFFERENCE, Validity};

/// An authority: its certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    certificate: String,
    key: String,
    validity: Validity,
}

// The key stays out of logs.
impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("validity", &self.validity).finish_non_exhaustive()
    }
}

impl Authority {
    pub(super) fn make(lifetime: i64, now: i64) -> Result<Self, CertificateError> {
        let validity = Validity { made: now, ends: now.saturating_add(lifetime) };
        let key = KeyPair::generate()?;
        let certificate = params(validity)?.self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), validity })
    }

    pub(super) fn new(certificate: String, key: String, validity: Validity) -> Self {
        Self { certificate, key, validity }
    }

    /// Checks that the certificate is that of the key.
    pub(super) fn check(&self) -> Result<(), CertificateError> {
        let invalid = |name, why: &str| CertificateError::Invalid { name, why: why.to_owned() };
        let key = KeyPair::from_pem(&self.key)
            .map_err(|_| invalid("ca.key", "it is no private key in PEM"))?;
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|_| invalid("ca.crt", "it is no certificate in PEM"))?;
        // The public key stands in the certificate as it is.
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return Err(invalid("ca.key", "it is not the key of ca.crt"));
        }
        params(self.validity).map(drop)
    }

    /// Its certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Its validity.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Signs a certificate with a new key. It ends with the authority at the latest.
    pub(super) fn sign(
        &self,
        names: &[String],
        lifetime: i64,
        now: i64,
    ) -> Result<Serving, CertificateError> {
        let ends = now.saturating_add(lifetime).min(self.validity.ends);
        let validity = Validity { made: now, ends };
        let issuer = Issuer::new(params(self.validity)?, KeyPair::from_pem(&self.key)?);
        let mut params = dated(CertificateParams::new(names)?, validity)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "innkeeper-admission");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Serving { certificate, key: key.serialize_pem(), validity, names: names.to_vec() })
    }
}

/// All of an authority's certificate but its key, made again from its validity: so the certificate
/// need not be parsed.
fn params(validity: Validity) -> Result<CertificateParams, CertificateError> {
    let mut params = dated(CertificateParams::new(Vec::new())?, validity)?;
    // The time tells the authorities in one bundle apart.
    let name = format!("innkeeper-admission authority {}", validity.made);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn dated(
    mut params: CertificateParams,
    validity: Validity,
) -> Result<CertificateParams, CertificateError> {
    let time =
        |seconds: i64| OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| rcgen::Error::Time);
    params.not_before = time(validity.made.saturating_sub(CLOCK_DIFFERENCE))?;
    params.not_after = time(validity.ends)?;
    Ok(params)
}
