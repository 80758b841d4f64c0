//! The admission server: HTTPS for the API server, bounded in number, size and time.
//!
//! It answers `POST /v1/policies/<module>/<index>`, where `<index>` is the position of the webhook
//! in its configuration. Everything that is no review gets a status and a sentence. The API server
//! takes each of these as a failed call, for which `failurePolicy` decides.
//!
//! Anybody who reaches the port may send requests, so no client can hold more than its part of the
//! connections and of the memory for bodies.

mod activity;
mod answer;
mod body;
mod body_budget;
mod connection;
mod connections;
mod deadline;
mod drain;
mod limits;
mod listener;
mod policy_path;
mod refusal;
mod statistics;
mod tls;
mod watched_stream;

use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::body_budget::BodyBudget;
pub use self::limits::ServerLimits;
pub use self::listener::Listener;
pub use self::statistics::ServerStatistics;
pub use self::tls::{TlsCertificate, TlsError};
use crate::reviewer::Reviewer;

/// Answers admission requests over HTTPS.
pub struct AdmissionServer<R> {
    tls: TlsAcceptor,
    shared: Arc<Shared<R>>,
}

/// What all connections share.
struct Shared<R> {
    reviewer: Arc<R>,
    limits: ServerLimits,
    bodies: BodyBudget,
    statistics: watch::Sender<ServerStatistics>,
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
        let tls = TlsAcceptor::from(Arc::new(tls::config(certificate, client_authority)?));
        let bodies = BodyBudget::new(limits);
        let statistics = watch::Sender::new(ServerStatistics::default());
        Ok(Self { tls, shared: Arc::new(Shared { reviewer, limits, bodies, statistics }) })
    }

    /// What the server does and has refused, now and after each change.
    pub fn statistics(&self) -> watch::Receiver<ServerStatistics> {
        self.shared.statistics.subscribe()
    }

    /// Answers until `stop` ends, then drains: for [`ServerLimits::drain_time`] the server still
    /// accepts connections and asks clients to close theirs; then it finishes the running requests.
    pub async fn serve(self, listener: impl Listener, stop: impl Future<Output = ()>) {
        connections::serve(self.tls, self.shared, listener, stop).await;
    }
}
