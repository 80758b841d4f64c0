//! The certificates that all replicas share, and the changes to them.

use super::authority::Authority;
use super::change::Change;
use super::error::CertificateError;
use super::serving::ServingCertificate;
use super::validity::{Lifetimes, Validity};

/// The certificates that all replicas share, as a Secret keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    pub(super) authority: Authority,
    pub(super) serving: ServingCertificate,
    pub(super) phase: Phase,
}

/// The step that a change of the authority has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// One authority is trusted.
    Stable,
    /// The next authority is trusted as well, and signs nothing yet.
    Announced {
        /// The next authority.
        next: Box<Authority>,
    },
    /// The new authority signs, and the previous one is trusted as well.
    Switched {
        /// The certificate of the previous authority, as PEM.
        previous: String,
    },
}

impl Certificates {
    /// Makes an authority and a certificate for these DNS names or IP addresses. `now` is in
    /// seconds since 1970.
    ///
    /// # Errors
    /// If a name cannot stand in a certificate, or there is no randomness.
    pub fn make(
        names: &[String],
        lifetimes: Lifetimes,
        now: i64,
    ) -> Result<Self, CertificateError> {
        let authority = Authority::make(lifetimes.authority, now)?;
        let serving = authority.sign(names, lifetimes.serving, now)?;
        Ok(Self { authority, serving, phase: Phase::Stable })
    }

    /// The certificate to serve.
    pub fn serving(&self) -> &ServingCertificate {
        &self.serving
    }

    /// The validity of the authority that signs.
    pub fn authority_validity(&self) -> Validity {
        self.authority.validity()
    }

    /// The step that a change of the authority has reached.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The certificates of all authorities that a webhook configuration must trust now, as PEM: its
    /// `caBundle`.
    pub fn bundle(&self) -> String {
        let other = match &self.phase {
            Phase::Stable => "",
            Phase::Announced { next } => next.certificate(),
            Phase::Switched { previous } => previous,
        };
        format!("{}{other}", self.authority.certificate())
    }

    /// Returns the certificates after a change, which [`Self::due`] gave. `now` is in seconds since
    /// 1970.
    ///
    /// # Errors
    /// If a certificate cannot be made.
    pub fn change(
        self,
        change: Change,
        names: &[String],
        lifetimes: Lifetimes,
        now: i64,
    ) -> Result<Self, CertificateError> {
        match (change, self.phase) {
            (Change::Replace, _) => Self::make(names, lifetimes, now),
            (Change::RenewServing, phase) => {
                let serving = self.authority.sign(names, lifetimes.serving, now)?;
                Ok(Self { serving, phase, ..self })
            }
            (Change::Announce, _) => {
                let next = Box::new(Authority::make(lifetimes.authority, now)?);
                Ok(Self { phase: Phase::Announced { next }, ..self })
            }
            (Change::Switch, Phase::Announced { next }) => {
                let serving = next.sign(names, lifetimes.serving, now)?;
                let previous = self.authority.certificate().to_owned();
                Ok(Self { authority: *next, serving, phase: Phase::Switched { previous } })
            }
            (Change::Switch | Change::DropPrevious, _) => Ok(Self { phase: Phase::Stable, ..self }),
        }
    }
}
