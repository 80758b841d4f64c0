//! Keeps the certificates valid: makes the first ones, and changes them step by step.

use std::time::Duration;

use innkeeper_admission::certificates::{Certificates, Observed};
use innkeeper_cluster::{ApiClient, Env};
use tokio::time::Instant;

use super::admission_settings::AdmissionSettings;
use super::certificate_store::{CertificateStore, CertificateStoreError, StoredCertificates};

/// How often the Secret with the certificates is read.
const PERIOD: Duration = Duration::from_secs(10);

/// Keeps the certificates valid, as the leader.
pub(super) struct CertificateKeeper {
    store: CertificateStore,
    env: Env,
    settings: AdmissionSettings,
    names: Vec<String>,
    bundle_trusted: Since,
    certificate_shown: Since,
    /// When the Secret was last read.
    read_at: Option<Instant>,
    /// The certificates that the API server is to trust, as PEM; `None` before the first ones are
    /// known.
    bundle: Option<String>,
    /// Why the last read or write failed.
    problem: Option<String>,
}

/// Since when a bundle or a certificate is everywhere, in seconds since 1970.
#[derive(Debug, Default)]
struct Since {
    /// The bundle, or the id of the certificate.
    value: String,
    at: Option<i64>,
}

impl Since {
    /// Records whether a value is everywhere now; returns since when it is.
    fn observe(&mut self, value: &str, is_everywhere: bool, now: i64) -> Option<i64> {
        if self.value != value || !is_everywhere {
            value.clone_into(&mut self.value);
            self.at = None;
        }
        if is_everywhere && self.at.is_none() {
            self.at = Some(now);
        }
        self.at
    }
}

impl CertificateKeeper {
    /// For the replicas of a host in this namespace.
    pub(super) fn new(host: ApiClient, settings: AdmissionSettings, namespace: &str) -> Self {
        Self {
            env: host.env().clone(),
            store: CertificateStore::new(host),
            names: settings.names(namespace),
            settings,
            bundle_trusted: Since::default(),
            certificate_shown: Since::default(),
            read_at: None,
            bundle: None,
            problem: None,
        }
    }

    /// The certificates that the API server is to trust, as PEM.
    ///
    /// # Errors
    /// Why there are none: for people, or `None` before the first [`CertificateKeeper::keep`].
    pub(super) fn bundle(&self) -> Result<&str, Option<&str>> {
        self.bundle.as_deref().ok_or(self.problem.as_deref())
    }

    /// Makes the certificates, or the change of them that is due, at most once in [`PERIOD`].
    ///
    /// `is_trusted` says whether each webhook configuration has this bundle, and `is_shown` whether
    /// each replica shows the certificate with this id.
    ///
    /// A Secret with something else in it is never replaced: a user deletes it.
    pub(super) async fn keep(
        &mut self,
        is_trusted: impl Fn(&str) -> bool,
        is_shown: impl Fn(&str) -> bool,
    ) {
        let now = self.env.instant();
        if self.read_at.is_some_and(|at| now.duration_since(at) < PERIOD) {
            return;
        }
        self.read_at = Some(now);
        let problem = match self.change(is_trusted, is_shown).await {
            Ok(certificates) => {
                self.bundle = Some(certificates.bundle());
                None
            }
            Err(error) => {
                // With invalid certificates in the Secret there is no bundle to trust.
                if matches!(error, CertificateStoreError::Certificates(_)) {
                    self.bundle = None;
                }
                Some(error.to_string())
            }
        };
        if let Some(problem) = problem.as_ref().filter(|one| self.problem.as_ref() != Some(one)) {
            tracing::warn!("{problem}; the host tries again");
        }
        self.problem = problem;
    }

    /// Makes the first certificates, or a change that is due; returns the present ones.
    async fn change(
        &mut self,
        is_trusted: impl Fn(&str) -> bool,
        is_shown: impl Fn(&str) -> bool,
    ) -> Result<Certificates, CertificateStoreError> {
        let now = self.env.now().as_second();
        let stored = match self.store.read().await? {
            Some(stored) => stored,
            None => self.make(now).await?,
        };
        let certificates = &stored.certificates;
        let (bundle, id) = (certificates.bundle(), certificates.serving().id());
        let observed = Observed {
            bundle_everywhere_since: self.bundle_trusted.observe(&bundle, is_trusted(&bundle), now),
            serving_everywhere_since: self.certificate_shown.observe(&id, is_shown(&id), now),
        };
        let Some(change) = certificates.due(&self.names, observed, now) else {
            return Ok(stored.certificates);
        };
        let lifetimes = self.settings.lifetimes;
        let next = certificates.clone().change(change, &self.names, lifetimes, now)?;
        self.store.replace(&stored, &next).await?;
        tracing::info!(change = ?change, certificate = next.serving().id(), "certificates changed");
        Ok(next)
    }

    /// Makes the first certificates, and reads the stored ones: another leader may have been
    /// faster.
    async fn make(&self, now: i64) -> Result<StoredCertificates, CertificateStoreError> {
        let made = Certificates::make(&self.names, self.settings.lifetimes, now)?;
        self.store.create(&made).await?;
        let missing = || innkeeper_cluster::ApiError::NotFound {
            message: "it was deleted while the host made it".to_owned(),
        };
        Ok(self.store.read().await?.ok_or_else(missing)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_begins_when_it_is_everywhere_and_again_for_something_else() {
        let mut since = Since::default();
        assert_eq!(since.observe("a", false, 1), None);
        assert_eq!(since.observe("a", true, 2), Some(2));
        assert_eq!(since.observe("a", true, 3), Some(2));
        assert_eq!(since.observe("a", false, 4), None);
        assert_eq!(since.observe("a", true, 5), Some(5));
        assert_eq!(since.observe("b", true, 6), Some(6));
    }
}
