//! Writes the report of this replica.

use std::time::Duration;

use innkeeper_cluster::client::{Force, Propagation};
use innkeeper_cluster::{ApiClient, ApiError, Backoff};
use innkeeper_core::host_objects::HOST_NAMESPACE;
use innkeeper_core::{Manager, ObjectKey};
use tokio::sync::watch;

use super::replica::ReplicaPolicies;
use super::replica_name::ReplicaName;
use super::replica_report::{LEASE, RENEWAL_PERIOD, ReplicaReport, lease_name};

/// The shortest time between two reports.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the deletion of the report may take at the end: it expires anyway.
const DELETION_TIME: Duration = Duration::from_secs(2);

/// Writes the report of this replica: at each change, at most once in [`PAUSE`], and else every
/// [`RENEWAL_PERIOD`].
pub(super) struct ReplicaReporter {
    host: ApiClient,
    key: ObjectKey,
    replica: ReplicaName,
    policies: ReplicaPolicies,
    /// The uid of the Lease, if this process has written it.
    uid: Option<Box<str>>,
    /// The last failure, which is logged once.
    failure: Option<String>,
}

impl ReplicaReporter {
    /// A reporter that sends as the host, in the namespace of the host.
    pub(super) fn new(host: ApiClient, replica: ReplicaName, policies: ReplicaPolicies) -> Self {
        let namespace = host.host_namespace().unwrap_or(HOST_NAMESPACE);
        let key = ObjectKey::new(namespace, &lease_name(&replica));
        Self { host, key, replica, policies, uid: None, failure: None }
    }

    /// Reports from when the policies are complete until `stop` is true or its sender is dropped;
    /// deletes the report then.
    pub(super) async fn report(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.keep() => {}
        }
        self.delete().await;
    }

    /// Never ends.
    async fn keep(&mut self) {
        let env = self.host.env().clone();
        let mut retry = Backoff::new(&env, PAUSE, RENEWAL_PERIOD);
        let mut changes = self.policies.active().changes();
        let mut certificates = self.policies.certificate();
        let mut problems = self.policies.problems();
        // The senders live as long as `policies`.
        while !self.policies.active().is_complete() {
            let _ = changes.changed().await;
        }
        loop {
            // Before the report is made: a later change is a reason for another one.
            changes.mark_unchanged();
            certificates.mark_unchanged();
            problems.mark_unchanged();
            match env.timeout(RENEWAL_PERIOD, self.write()).await {
                Ok(Ok(())) => {
                    self.policies.note_report();
                    self.note_success();
                    retry.reset();
                }
                Ok(Err(error)) => {
                    self.note_failure(&error.to_string());
                    env.sleep(retry.advance()).await;
                    continue;
                }
                Err(elapsed) => {
                    self.note_failure(&elapsed.to_string());
                    continue;
                }
            }
            env.sleep(PAUSE).await;
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                _ = certificates.changed() => {}
                _ = problems.changed() => {}
                () = env.sleep(RENEWAL_PERIOD.saturating_sub(PAUSE)) => {}
            }
        }
    }

    /// Writes what the replica reviews with now.
    async fn write(&mut self) -> Result<(), ApiError> {
        let certificate = self.policies.certificate().borrow().clone();
        let problems = self.policies.problems().borrow().clone();
        let active = self.policies.active().policies();
        let report = ReplicaReport::new(certificate, active.iter().map(|one| &**one), &problems);
        let now = self.host.env().now();
        let mut lease = report.lease(self.key.namespace(), &self.replica, now);
        if let Some(uid) = &self.uid {
            lease["metadata"]["uid"] = (**uid).into();
        }
        let written = self.host.apply(&LEASE, &self.key, &Manager::Host, &lease, Force::Yes).await;
        match written {
            Ok(applied) => {
                self.uid = Some(applied.object.uid);
                Ok(())
            }
            Err(error) => {
                let is_gone = matches!(
                    error,
                    ApiError::NotFound { .. }
                        | ApiError::ObjectDeleted { .. }
                        | ApiError::UidMismatch { .. }
                );
                // Somebody has deleted it: the next report makes another one.
                if is_gone {
                    self.uid = None;
                }
                Err(error)
            }
        }
    }

    /// Deletes the report, so that the leader does not wait for this replica.
    async fn delete(&mut self) {
        let Some(uid) = self.uid.take() else { return };
        let delete = self.host.delete(&LEASE, &self.key, &uid, Propagation::Background);
        let why = match self.host.env().timeout(DELETION_TIME, delete).await {
            // Another process of this name has its own report.
            Ok(Ok(_) | Err(ApiError::UidMismatch { .. })) => return,
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(lease = %self.key, "report of this replica not deleted: {why}; it expires");
    }

    fn note_success(&mut self) {
        if self.failure.take().is_some() {
            tracing::info!(lease = %self.key, "report of this replica written again");
        }
    }

    fn note_failure(&mut self, why: &str) {
        if self.failure.as_deref() != Some(why) {
            tracing::warn!(
                lease = %self.key,
                "report of this replica not written: {why}; the replica tries again, and until then the leader may take it for dead"
            );
            self.failure = Some(why.to_owned());
        }
    }
}
