//! The admission server: [`AdmissionServer`].

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::connections;
use super::limits::ServerLimits;
use super::listener::Listener;
use super::shared::Shared;
use super::statistics::ServerStatistics;
use super::tls::{TlsCertificate, TlsError, tls_config};
use crate::reviewer::Reviewer;

/// Answers admission requests over HTTPS.
pub struct AdmissionServer<R> {
    tls: TlsAcceptor,
    shared: Arc<Shared<R>>,
}

impl<R: Reviewer> AdmissionServer<R> {
    /// Makes a server that asks `reviewer`.
    ///
    /// Each handshake uses the certificate that `certificate` has then. With `client_authority`,
    /// certificates of authorities as PEM, only clients that have a certificate of one of them are
    /// answered; without, all are.
    ///
    /// # Errors
    /// If `client_authority` has no certificate that can be used.
    pub fn new(
        certificate: watch::Receiver<TlsCertificate>,
        client_authority: Option<&str>,
        reviewer: Arc<R>,
        limits: ServerLimits,
    ) -> Result<Self, TlsError> {
        let tls = TlsAcceptor::from(Arc::new(tls_config(certificate, client_authority)?));
        Ok(Self { tls, shared: Arc::new(Shared::new(reviewer, limits)) })
    }

    /// The statistics of the server, now and after each change.
    pub fn statistics(&self) -> watch::Receiver<ServerStatistics> {
        self.shared.statistics.subscribe()
    }

    /// Answers until `stop` ends, then drains: for [`ServerLimits::drain_time`] the server still
    /// accepts connections and asks clients to close theirs; then it finishes the running requests.
    pub async fn serve(self, listener: impl Listener, stop: impl Future<Output = ()>) {
        connections::serve(self.tls, self.shared, listener, stop).await;
    }
}
