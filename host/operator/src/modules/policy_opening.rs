//! Opens the policies that the leader itself reviews with: candidates, and those of a folder.

use std::sync::Arc;

use innkeeper_cluster::{ApiClient, Caches};
use innkeeper_modules::Revision;
use innkeeper_sandbox::Guest;

use super::supervisor::Supervisor;
use crate::policies::{ActivePolicy, Entry, PolicyRecord, ReplicaPolicies, active_policy};
use crate::preview::policy::PolicyCandidate;

/// What policies of one module and account are opened with. Clones are the same.
#[derive(Clone)]
pub(super) struct PolicyOpening {
    caches: Caches,
    /// Requests as the account, as long as it lets the module act as it.
    client: ApiClient,
    /// The same account without the module: policies of one account share its caches, and revoking
    /// one module closes its view only.
    reader: ApiClient,
    /// Requests as the host.
    host: ApiClient,
    /// The policies of this replica, with the requests that they kept.
    replica: ReplicaPolicies,
}

impl PolicyOpening {
    /// Requests as the host.
    pub(super) fn host(&self) -> &ApiClient {
        &self.host
    }

    /// The policy of a record with its guest; `None` for a record without a policy.
    pub(super) fn open(&self, record: &PolicyRecord, guest: &Guest) -> Option<PolicyCandidate> {
        let guest = guest.with_manifest(Arc::new(record.manifest.clone()));
        let kinds = active_policy::reads(&guest);
        let namespaces = record.settings.read_namespaces();
        let view = (!kinds.is_empty())
            .then(|| self.caches.open(&self.reader, &record.module, &kinds, &namespaces));
        let policy = ActivePolicy::new(record, &guest, self.client.clone(), view)?;
        Some(PolicyCandidate {
            policy: Arc::new(policy),
            caches: self.caches.clone(),
            reader: self.reader.clone(),
            host: self.host.clone(),
            replica: self.replica.clone(),
        })
    }
}

impl Supervisor {
    /// What policies of a module are opened with that act as this account.
    pub(super) fn policy_opening(&mut self, name: &str, account: Option<&str>) -> PolicyOpening {
        let client = self.client(name, account);
        let reader = self.cache_reader(account);
        PolicyOpening {
            caches: self.caches.clone(),
            client,
            reader,
            host: self.cluster.host(),
            replica: self.replica.clone(),
        }
    }

    /// The policy of a candidate; `None` if it has none, or the Module does not let it review.
    pub(super) fn open_candidate(&mut self, candidate: &Revision) -> Option<PolicyCandidate> {
        candidate.policy()?;
        let record = PolicyRecord::of(candidate, "")?;
        let account = candidate.spec.service_account.as_deref();
        self.policy_opening(&candidate.module, account).open(&record, &candidate.guest)
    }

    /// The policy of a module with which this replica reviews.
    pub(super) fn own_policy(&self, name: &str) -> Option<Arc<ActivePolicy>> {
        match self.replica.active().get(name, self.shared.env.instant())? {
            Entry::Active(policy) => Some(policy),
            Entry::Removed { .. } => None,
        }
    }

    /// The policy of a module that reviews now: that of this replica, or else one of the active
    /// revision. `None` if the module has none.
    pub(super) fn reviewing_policy(&mut self, name: &str) -> Option<Arc<ActivePolicy>> {
        if let Some(policy) = self.own_policy(name) {
            return Some(policy);
        }
        let active = self.driver.active_revision(name).cloned()?;
        self.open_candidate(&active).map(|open| open.policy)
    }
}
