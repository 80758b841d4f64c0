//! A certificate authority of the host's own.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use time::OffsetDateTime;

use super::error::CertificateError;
use super::serving::ServingCertificate;
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
    /// Makes an authority with a new key. Times are in seconds, `now` since 1970.
    ///
    /// # Errors
    /// If there is no randomness, or a time is no date.
    pub(super) fn make(lifetime: i64, now: i64) -> Result<Self, CertificateError> {
        let validity = Validity { made: now, ends: now.saturating_add(lifetime) };
        let key = KeyPair::generate()?;
        let certificate = authority_params(validity)?.self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), validity })
    }

    pub(super) fn new(certificate: String, key: String, validity: Validity) -> Self {
        Self { certificate, key, validity }
    }

    /// Checks that the certificate is that of the key.
    ///
    /// # Errors
    /// [`CertificateError::Invalid`] with the member of the Secret at fault.
    pub(super) fn check(&self) -> Result<(), CertificateError> {
        let invalid = |name, why: &str| CertificateError::Invalid { name, why: why.to_owned() };
        let key = KeyPair::from_pem(&self.key)
            .map_err(|_| invalid("ca.key", "it is no private key in PEM"))?;
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|_| invalid("ca.crt", "it is no certificate in PEM"))?;
        // The certificate contains the bytes of the public key unchanged.
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|window| window == public) {
            return Err(invalid("ca.key", "it is not the key of ca.crt"));
        }
        authority_params(self.validity).map(drop)
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

    /// Signs a certificate with a new key for these names. It ends with the authority at the
    /// latest.
    ///
    /// # Errors
    /// If a name cannot stand in a certificate, or there is no randomness.
    pub(super) fn sign(
        &self,
        names: &[String],
        lifetime: i64,
        now: i64,
    ) -> Result<ServingCertificate, CertificateError> {
        let ends = now.saturating_add(lifetime).min(self.validity.ends);
        let validity = Validity { made: now, ends };
        let issuer = Issuer::new(authority_params(self.validity)?, KeyPair::from_pem(&self.key)?);
        let mut params = dated(CertificateParams::new(names)?, validity)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "innkeeper-admission");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(ServingCertificate {
            certificate,
            key: key.serialize_pem(),
            validity,
            names: names.to_vec(),
        })
    }
}

/// The parameters of an authority's certificate. They follow from its validity, so that the host
/// need not parse the certificate to sign with it.
fn authority_params(validity: Validity) -> Result<CertificateParams, CertificateError> {
    let mut params = dated(CertificateParams::new(Vec::new())?, validity)?;
    // The time in the name distinguishes the authorities in one bundle.
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
