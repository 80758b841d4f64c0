//! One revision of a policy with what it runs with.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_admission::{FailurePolicy, Mode};
use innkeeper_cluster::{ApiClient, Caches, View};
use innkeeper_contract::{Kind, PolicyKind};
use innkeeper_modules::Digest;
use innkeeper_sandbox::Guest;

use super::admission_mode::{admission_failure_policy, admission_mode};
use super::policy_settings::PolicySettings;
use super::record::PolicyRecord;
use super::review_counts::ReviewCounts;
use crate::guest_log::GuestLog;
use crate::modules::open_revision;

/// Opens caches as the account of a module.
#[derive(Clone)]
pub struct CacheAccess {
    /// The caches, of which the view of the policy is one.
    pub caches: Caches,
    /// Requests as the account.
    pub reader: ApiClient,
}

/// One revision of a policy with its settings, its client and its caches. Only its counts
/// change; a swap replaces it whole, so that a review ends with the policy that it began with.
pub struct ActivePolicy {
    /// The name of the Module.
    pub module: Arc<str>,
    /// The uid of the Module.
    pub module_uid: String,
    /// The digest of the record, by which replicas say what they review with.
    pub id: String,
    /// The digest of the component.
    pub digest: Digest,
    /// The guest, with the manifest and the limits of the record.
    pub guest: Guest,
    /// Whether the policy only decides, or also changes objects.
    pub kind: PolicyKind,
    /// The settings of the Module.
    pub settings: PolicySettings,
    /// The parameters of the Module as JSON; empty for none.
    pub parameters: Arc<str>,
    /// The caches, as the account of the module may read them. `None` if the guest reads nothing,
    /// or its account does not let the module act as it: then every read is forbidden.
    pub view: Option<Arc<View>>,
    /// Requests as the account of the module.
    pub client: ApiClient,
    /// What opens further caches as the account of the module; `None` without an account, or if it
    /// does not let the module act as it.
    pub access: Option<CacheAccess>,
    /// The log of the guest.
    pub log: Arc<GuestLog>,
    /// The reviews that have ended.
    pub counts: Arc<ReviewCounts>,
    /// The kinds that the guest may read, by group and version, and kind.
    kinds: BTreeMap<(String, String), Arc<Kind>>,
}

impl ActivePolicy {
    /// The decided policy of a record with its loaded guest; `None` for a record without a policy.
    ///
    /// `client` acts as the account of the module, and `view` reads what [`reads`] gives.
    pub fn new(
        record: &PolicyRecord,
        guest: &Guest,
        client: ApiClient,
        view: Option<View>,
    ) -> Option<Self> {
        let kind = record.manifest.policy.as_ref()?.kind;
        let guest = guest
            .with_manifest(Arc::new(record.manifest.clone()))
            .with_limits(record.settings.limits.limits());
        let kinds = reads(&guest)
            .into_iter()
            .map(|kind| ((kind.api_version.clone(), kind.kind.clone()), Arc::new(kind)))
            .collect();
        let parameters = match &record.settings.parameters {
            serde_json::Value::Null => Arc::default(),
            parameters => parameters.to_string().into(),
        };
        Some(Self {
            module: record.module.as_str().into(),
            module_uid: record.module_uid.clone(),
            id: record.id(),
            digest: record.digest,
            guest,
            kind,
            settings: record.settings.clone(),
            parameters,
            view: view.map(Arc::new),
            access: None,
            log: Arc::new(GuestLog::new(client.env())),
            counts: Arc::default(),
            client,
            kinds,
        })
    }

    /// The same policy with what opens further caches.
    #[must_use]
    pub fn with_access(self, access: Option<CacheAccess>) -> Self {
        Self { access, ..self }
    }

    /// The same policy with the log and the counts of an earlier one, if both are of one record.
    #[must_use]
    pub fn going_on_from(self, earlier: Option<&Self>) -> Self {
        match earlier.filter(|earlier| earlier.id == self.id) {
            Some(earlier) => {
                let (log, counts) = (earlier.log.clone(), earlier.counts.clone());
                Self { log, counts, ..self }
            }
            None => self,
        }
    }

    /// The mode of the Module.
    pub fn default_mode(&self) -> Mode {
        admission_mode(self.settings.policy.mode)
    }

    /// The mode of a webhook of the policy: 0 is that of the Module, and each further one an
    /// override for namespaces. `None` if there is no such webhook.
    pub fn mode(&self, webhook: usize) -> Option<Mode> {
        self.settings.mode(webhook).map(admission_mode)
    }

    /// The failure policy of the Module; `None` for the default of the kind of the policy.
    pub fn failure_policy(&self) -> Option<FailurePolicy> {
        self.settings.policy.failure_policy.map(admission_failure_policy)
    }

    /// A kind that the guest may read.
    pub fn kind_of(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&(api_version.to_owned(), kind.to_owned()))
    }
}

/// The kinds that a policy may read: all that its guest declares, as in a reconcile.
pub fn reads(guest: &Guest) -> Vec<Kind> {
    open_revision::declared(guest)
}
