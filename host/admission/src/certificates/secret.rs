//! Certificates as the members of a Secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::authority::Authority;
use super::error::CertificateError;
use super::serving::ServingCertificate;
use super::shared::{Certificates, Phase};
use super::validity::Validity;

/// The largest member that the host reads, in bytes. It writes members of about 700 bytes.
const MEMBER_BYTES_MAX: usize = 16 << 10;

/// The member `state`: what the certificates as PEM do not tell.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    phase: PhaseName,
    authority: Validity,
    serving: Validity,
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Validity>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum PhaseName {
    Stable,
    Announced,
    Switched,
}

impl Certificates {
    /// Returns the `data` of the Secret, not encoded.
    pub fn secret_data(&self) -> BTreeMap<String, String> {
        let mut state = State {
            phase: PhaseName::Stable,
            authority: self.authority.validity(),
            serving: self.serving.validity,
            names: self.serving.names.clone(),
            next: None,
        };
        let mut data = BTreeMap::from([
            ("ca.crt".to_owned(), self.authority.certificate().to_owned()),
            ("ca.key".to_owned(), self.authority.key().to_owned()),
            ("tls.crt".to_owned(), self.serving.certificate.clone()),
            ("tls.key".to_owned(), self.serving.key.clone()),
        ]);
        match &self.phase {
            Phase::Stable => {}
            Phase::Announced { next } => {
                state.phase = PhaseName::Announced;
                state.next = Some(next.validity());
                data.insert("next-ca.crt".to_owned(), next.certificate().to_owned());
                data.insert("next-ca.key".to_owned(), next.key().to_owned());
            }
            Phase::Switched { previous } => {
                state.phase = PhaseName::Switched;
                data.insert("previous-ca.crt".to_owned(), previous.clone());
            }
        }
        data.insert("state".to_owned(), serde_json::json!(state).to_string());
        data
    }

    /// Reads the `data` of the Secret, decoded.
    ///
    /// # Errors
    /// If a member is missing, too large, or not what [`Certificates::secret_data`] gives.
    pub fn from_secret_data(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, CertificateError> {
        let member = |name: &'static str| -> Result<String, CertificateError> {
            let invalid = |why: String| CertificateError::Invalid { name, why };
            let bytes = data.get(name).ok_or(CertificateError::Missing(name))?;
            if bytes.len() > MEMBER_BYTES_MAX {
                let length = bytes.len();
                return Err(invalid(format!("it has {length} bytes, more than a certificate")));
            }
            String::from_utf8(bytes.clone()).map_err(|error| invalid(error.to_string()))
        };
        let state: State = serde_json::from_str(&member("state")?)
            .map_err(|error| CertificateError::Invalid { name: "state", why: error.to_string() })?;
        let phase = match state.phase {
            PhaseName::Stable => Phase::Stable,
            PhaseName::Announced => {
                let validity = state.next.ok_or_else(|| CertificateError::Invalid {
                    name: "state",
                    why: "it has no dates of the next authority".to_owned(),
                })?;
                let next = authority(member("next-ca.crt")?, member("next-ca.key")?, validity)?;
                Phase::Announced { next: Box::new(next) }
            }
            PhaseName::Switched => Phase::Switched { previous: member("previous-ca.crt")? },
        };
        let serving = ServingCertificate {
            certificate: member("tls.crt")?,
            key: member("tls.key")?,
            validity: state.serving,
            names: state.names,
        };
        serving.der()?;
        let authority = authority(member("ca.crt")?, member("ca.key")?, state.authority)?;
        Ok(Self { authority, serving, phase })
    }
}

/// An authority whose certificate is the one that belongs to its key and dates.
fn authority(
    certificate: String,
    key: String,
    validity: Validity,
) -> Result<Authority, CertificateError> {
    let authority = Authority::new(certificate, key, validity);
    // Otherwise only the API server would notice a key of another certificate.
    authority.check()?;
    Ok(authority)
}
