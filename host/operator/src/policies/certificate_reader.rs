//! The certificate that this replica shows, as the Secret of the host has it.

use std::time::Duration;

use innkeeper_admission::TlsCertificate;
use innkeeper_cluster::{ApiClient, Env};
use tokio::sync::watch;

use super::certificate_store::{CertificateStore, CertificateStoreError};

/// How often the Secret is read: the leader waits for all replicas in any case.
const PERIOD: Duration = Duration::from_secs(10);

/// A certificate for handshakes, and its id.
#[derive(Clone, Debug)]
pub struct ShownCertificate {
    /// The id of the certificate, which the replica reports to the leader.
    pub id: String,
    /// The certificate with its key.
    pub tls: TlsCertificate,
}

/// Reads the certificate of the Secret again and again, until `stop` is true or its sender is
/// dropped. `shown` has the last one that can be used: one that cannot is logged, and the one
/// before stays.
pub async fn read_certificates(
    host: ApiClient,
    shown: watch::Sender<Option<ShownCertificate>>,
    mut stop: watch::Receiver<bool>,
) {
    let env = host.env().clone();
    let store = CertificateStore::new(host);
    let mut problem: Option<String> = None;
    loop {
        match read(&store).await {
            // The leader makes it.
            Ok(None) => problem = None,
            Ok(Some(found)) => {
                problem = None;
                shown.send_if_modified(|before| {
                    let is_new = before.as_ref().is_none_or(|before| before.id != found.id);
                    if is_new {
                        tracing::info!(certificate = found.id, "serving certificate changed");
                        *before = Some(found);
                    }
                    is_new
                });
            }
            Err(error) => {
                let error = error.to_string();
                if problem.as_ref() != Some(&error) {
                    tracing::warn!("{error}; this replica shows the certificate that it has");
                    problem = Some(error);
                }
            }
        }
        if !wait(&env, &mut stop).await {
            return;
        }
    }
}

/// Waits for the next read. False if there is none.
async fn wait(env: &Env, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => false,
        () = env.sleep(PERIOD) => true,
    }
}

async fn read(store: &CertificateStore) -> Result<Option<ShownCertificate>, CertificateStoreError> {
    let Some(stored) = store.read().await? else { return Ok(None) };
    let serving = stored.certificates.serving();
    Ok(Some(ShownCertificate { id: serving.id(), tls: TlsCertificate::new(serving)? }))
}
