//! The tasks of a replica that reviews: it follows the policies, reads its certificate and answers
//! the API server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use innkeeper_admission::{AdmissionServer, ServerLimits, ServerStatistics, TlsCertificate};
use innkeeper_cluster::Cluster;
use innkeeper_operator::{
    AdmissionSettings, ModulesLocation, PolicyFollower, PolicyReviewer, ReplicaName,
    ReplicaPolicies, ShownCertificate, read_certificates,
};
use innkeeper_sandbox::Engine;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::arguments::AdmissionArguments;
use super::reviewing::Reviewing;

/// Maximum time for the last requests after the stop: the server drains, and finishes what runs.
const END_TIME: Duration = Duration::from_secs(20);

/// An admission server that listens and does not answer yet.
pub(crate) struct Admission {
    listener: TcpListener,
    settings: AdmissionSettings,
    client_authority: Option<String>,
}

/// The running tasks of a replica that reviews.
pub(crate) struct RunningAdmission {
    following: JoinHandle<()>,
    reading: JoinHandle<()>,
    answering: JoinHandle<anyhow::Result<()>>,
}

impl Admission {
    /// Listens, if the arguments ask for a server.
    ///
    /// # Errors
    /// If an argument cannot be used, or the address is in use or not available.
    pub(crate) async fn bind(
        arguments: &AdmissionArguments,
        from: &ModulesLocation,
    ) -> anyhow::Result<Option<Self>> {
        let Some((bind, settings)) = arguments.settings(from)? else { return Ok(None) };
        let client_authority = arguments.client_authority()?;
        let listener = TcpListener::bind(bind).await.with_context(|| {
            format!(
                "cannot listen on {bind} for admission requests; choose another address with --admission-bind"
            )
        })?;
        tracing::info!(bind = %listener.local_addr().unwrap_or(bind), "admission server listening");
        Ok(Some(Self { listener, settings, client_authority }))
    }

    /// How the API server reaches the replicas.
    pub(crate) fn settings(&self) -> &AdmissionSettings {
        &self.settings
    }

    /// Starts to follow the policies and to answer, until `stop`. `cluster` has a fence that is
    /// always open, and the key of the host; `replica` is the identity of this process and its
    /// policies.
    pub(crate) fn start(
        self,
        cluster: Cluster,
        engine: Engine,
        (identity, policies): (&str, &ReplicaPolicies),
        stop: &watch::Receiver<bool>,
    ) -> (RunningAdmission, Reviewing) {
        let (shown, certificate) = watch::channel(None);
        let (publish, statistics) = watch::channel(None);
        let reviewing = Reviewing { policies: policies.clone(), statistics };
        let reading = tokio::spawn(read_certificates(cluster.host(), shown, stop.clone()));
        let replica = ReplicaName::of(identity);
        let follower = PolicyFollower::new(cluster, engine, policies.clone(), replica);
        let following = tokio::spawn(follower.follow(stop.clone()));
        let answering =
            tokio::spawn(self.answer(certificate, policies.clone(), publish, stop.clone()));
        (RunningAdmission { following, reading, answering }, reviewing)
    }

    /// Answers as soon as there is a certificate.
    async fn answer(
        self,
        mut shown: watch::Receiver<Option<ShownCertificate>>,
        policies: ReplicaPolicies,
        publish: watch::Sender<Option<watch::Receiver<ServerStatistics>>>,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let Some(first) = next_certificate(&mut shown).await else { return Ok(()) };
        policies.set_certificate(&first.id);
        let (rotate, certificate) = watch::channel(first.tls);
        let reviewer = Arc::new(PolicyReviewer::new(policies.clone()));
        let limits = ServerLimits::default();
        let authority = self.client_authority.as_deref();
        let server = AdmissionServer::new(certificate, authority, reviewer, limits)
            .context("--admission-client-ca")?;
        publish.send_replace(Some(server.statistics()));
        let stopped = async move {
            // A dropped sender is a stop as well.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        tokio::join!(server.serve(self.listener, stopped), rotate_to(shown, rotate, policies));
        Ok(())
    }
}

/// Waits for a certificate that was not seen before; `None` once nobody reads any.
async fn next_certificate(
    shown: &mut watch::Receiver<Option<ShownCertificate>>,
) -> Option<ShownCertificate> {
    loop {
        if shown.has_changed().ok()?
            && let Some(found) = shown.borrow_and_update().clone()
        {
            return Some(found);
        }
        shown.changed().await.ok()?;
        shown.mark_changed();
    }
}

/// Shows each new certificate in later handshakes, and reports it.
async fn rotate_to(
    mut shown: watch::Receiver<Option<ShownCertificate>>,
    rotate: watch::Sender<TlsCertificate>,
    policies: ReplicaPolicies,
) {
    while let Some(next) = next_certificate(&mut shown).await {
        rotate.send_replace(next.tls);
        policies.set_certificate(&next.id);
    }
}

impl RunningAdmission {
    /// Waits after the stop until the last request is answered; a second signal ends the wait.
    ///
    /// # Errors
    /// If a task has failed.
    pub(crate) async fn end(self, force: &Notify) -> anyhow::Result<()> {
        let Self { following, reading, answering } = self;
        let all = async {
            let (following, reading, answering) = tokio::join!(following, reading, answering);
            following.context("the follower of the policies panicked")?;
            reading.context("the reader of the certificates panicked")?;
            answering.context("the admission server panicked")?
        };
        tokio::select! {
            biased;
            result = all => result,
            () = force.notified() => Ok(()),
            () = tokio::time::sleep(END_TIME) => {
                tracing::warn!("admission requests did not end within {} s and are dropped", END_TIME.as_secs());
                Ok(())
            }
        }
    }
}
