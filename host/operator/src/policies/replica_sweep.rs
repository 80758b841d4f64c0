//! Deletes the reports of replicas that are gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::client::Propagation;
use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_core::Object;
use tokio::time::Instant;

use super::replica_report::{LEASE, replica_of};

/// How long a report stays without a renewal. The leader measures it by its own clock: that of
/// the replica may be wrong.
const UNCHANGED_TIME: Duration = Duration::from_mins(5);

/// The reports that the leader has seen, and since when each of them has been unchanged.
pub(super) struct ReplicaSweep {
    host: ApiClient,
    /// Resource version and its first sight, by the name of the Lease.
    seen: BTreeMap<Box<str>, (Box<str>, Instant)>,
}

impl ReplicaSweep {
    /// Deletes as the host.
    pub(super) fn new(host: ApiClient) -> Self {
        Self { host, seen: BTreeMap::new() }
    }

    /// Deletes those of these Leases that are reports of replicas and have not changed for
    /// [`UNCHANGED_TIME`]. Other Leases may be among them.
    ///
    /// # Errors
    /// If a request fails.
    pub(super) async fn sweep(&mut self, leases: &[Arc<Object>]) -> Result<(), ApiError> {
        for lease in self.due(leases, self.host.env().instant()) {
            let Object { key, uid, .. } = &*lease;
            match self.host.delete(&LEASE, key, uid, Propagation::Background).await {
                Ok(_) => tracing::info!(lease = %key, "report of a replica that is gone deleted"),
                // Another replica of this name has its own report.
                Err(ApiError::UidMismatch { .. } | ApiError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn due(&mut self, leases: &[Arc<Object>], now: Instant) -> Vec<Arc<Object>> {
        let mut seen = BTreeMap::new();
        let mut due = Vec::new();
        for lease in leases.iter().filter(|lease| replica_of(lease).is_some()) {
            let name: Box<str> = lease.key.name().into();
            let before = self.seen.remove(&name);
            let is_same = |(version, _): &(Box<str>, Instant)| *version == lease.resource_version;
            let since = before.filter(is_same).map_or(now, |(_, since)| since);
            if now.duration_since(since) >= UNCHANGED_TIME {
                due.push(lease.clone());
            }
            seen.insert(name, (lease.resource_version.clone(), since));
        }
        self.seen = seen;
        due
    }
}
