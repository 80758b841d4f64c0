//! Opens the policy of a record: loads its component and opens its caches.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Account, ApiClient, Caches, Cluster, Revocation, View};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::NAMESPACE;
use innkeeper_modules::{Digest, SourceError};
use innkeeper_sandbox::{Engine, Guest, LoadError};
use tokio::sync::Semaphore;

use super::active_policy::{self, ActivePolicy, CacheAccess};
use super::record::PolicyRecord;
use crate::execution::Execution;
use crate::modules::{component_snapshots, module_client};

/// Why a record cannot become active.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The snapshot of the component cannot be read.
    #[error(
        "the snapshot of the component cannot be read: {0}; push the component again, or give the host the rights of deploy/base/roles.yaml"
    )]
    Snapshot(#[from] SourceError),
    /// The snapshot has another component.
    #[error(
        "ConfigMap {NAMESPACE}/{name} holds the component {}, and the record is of {}: somebody has replaced it; delete the ConfigMap, and push the component again",
        .found.short(), .expected.short()
    )]
    OtherComponent {
        /// The ConfigMap.
        name: String,
        /// The digest of the component in it.
        found: Digest,
        /// The digest in the record.
        expected: Digest,
    },
    /// The component is no guest, or does not load within its limits.
    #[error("the component cannot be loaded: {0}; push another component")]
    Load(#[from] LoadError),
    /// The manifest in the record is that of another component.
    #[error(
        "the component describes itself otherwise than its record says; delete the ConfigMap of the record, and the leader writes it again"
    )]
    OtherManifest,
}

/// Whether a policy acts as the account of its module.
#[derive(Clone)]
pub(super) enum Access {
    /// The policy acts as the account until this revocation.
    Open(Revocation),
    /// The account does not let the module act as it: every read is forbidden.
    Closed,
}

/// Opens policies: it loads one component at a time.
pub(super) struct PolicyOpener {
    pub(super) cluster: Cluster,
    pub(super) engine: Engine,
    pub(super) execution: Execution,
    pub(super) caches: Caches,
    loads: Semaphore,
}

impl PolicyOpener {
    /// An opener of policies that read `caches` over `cluster`.
    pub(super) fn new(
        cluster: Cluster,
        engine: Engine,
        execution: Execution,
        caches: Caches,
    ) -> Self {
        Self { cluster, engine, execution, caches, loads: Semaphore::new(1) }
    }

    /// The policy of a record. It takes the component of `active`, if that has the same one, and
    /// waits at most `limit` until it is known which kinds the policy can read: those that are not
    /// read by then are unreadable for a while.
    ///
    /// # Errors
    /// If the component cannot be read or loaded, or is not that of the record.
    pub(super) async fn open(
        &self,
        record: &PolicyRecord,
        active: Option<&ActivePolicy>,
        access: Access,
        limit: Duration,
    ) -> Result<ActivePolicy, OpenError> {
        let guest = match active.filter(|active| active.digest == record.digest) {
            Some(active) => active.guest.clone(),
            None => self.load(record).await?,
        };
        if !record.describes(guest.described()) {
            return Err(OpenError::OtherManifest);
        }
        let view = match &access {
            Access::Open(_) => self.view(record, &guest),
            Access::Closed => None,
        };
        if let Some(view) = &view {
            // Other replicas review with this record already, so it becomes active in any case.
            let _ = self.cluster.env().timeout(limit, view.settled()).await;
        }
        self.policy(record, &guest, &access, view)
    }

    /// The policy of a record with the component of another one of its policies, without reads.
    ///
    /// # Errors
    /// If the component is not that of the record.
    pub(super) fn closed(
        &self,
        record: &PolicyRecord,
        guest: &Guest,
    ) -> Result<ActivePolicy, OpenError> {
        self.policy(record, guest, &Access::Closed, None)
    }

    fn policy(
        &self,
        record: &PolicyRecord,
        guest: &Guest,
        access: &Access,
        view: Option<View>,
    ) -> Result<ActivePolicy, OpenError> {
        let client = self.client(record, access);
        let policy =
            ActivePolicy::new(record, guest, client, view).ok_or(OpenError::OtherManifest)?;
        let reader = match access {
            Access::Open(_) => self.reader(record),
            Access::Closed => None,
        };
        let caches = self.caches.clone();
        Ok(policy.with_access(reader.map(|reader| CacheAccess { caches, reader })))
    }

    async fn load(&self, record: &PolicyRecord) -> Result<Guest, OpenError> {
        // The semaphore is never closed.
        let _permit = self.loads.acquire().await;
        let component =
            component_snapshots::fetch(&self.cluster, &record.module, record.digest).await?;
        // Editors of modules may write this ConfigMap.
        if component.digest != record.digest {
            let name = snapshot_name(&record.module, record.digest);
            let (found, expected) = (component.digest, record.digest);
            return Err(OpenError::OtherComponent { name, found, expected });
        }
        let limits = record.settings.limits.limits();
        Ok(self.execution.run(|| self.engine.load(&component.bytes, &limits))?)
    }

    /// The caches of the kinds that a policy reads; `None` if it reads none.
    fn view(&self, record: &PolicyRecord, guest: &Guest) -> Option<View> {
        let guest = guest.with_manifest(Arc::new(record.manifest.clone()));
        let kinds = active_policy::reads(&guest);
        let reader = self.reader(record)?;
        let namespaces = record.settings.read_namespaces();
        (!kinds.is_empty()).then(|| self.caches.open(&reader, &record.module, &kinds, &namespaces))
    }

    /// The client that fills the caches of a policy. Policies of one account share these caches,
    /// and closing one policy closes its view only.
    fn reader(&self, record: &PolicyRecord) -> Option<ApiClient> {
        let account = record.settings.service_account.as_deref()?;
        let account = Account::new(NAMESPACE, account);
        Some(module_client::cache_reader(&self.cluster, Some(&account)))
    }

    /// The client of a policy. One without access sends nothing, and never acts as the host.
    fn client(&self, record: &PolicyRecord, access: &Access) -> ApiClient {
        let account = record.settings.service_account.as_deref().unwrap_or_default();
        let revocation = match access {
            Access::Open(revocation) => revocation.clone(),
            Access::Closed => {
                let revocation = Revocation::default();
                revocation.revoke();
                revocation
            }
        };
        let account = Account::new(NAMESPACE, account);
        module_client::client(&self.cluster, Some(&account), &revocation)
    }
}
