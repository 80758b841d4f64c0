//! The objects of policies in the cluster at one time, from the caches of the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_cluster::cache::{CacheReadError, CacheSnapshot};
use innkeeper_cluster::{ApiClient, Caches, Namespaces, View};
use innkeeper_contract::PolicyKind;
use innkeeper_core::host_objects::{POLICY_PREFIX, policy_object_name};
use innkeeper_core::{Labels, Object};

use super::configurations::{LiveConfiguration, LiveConfigurations};
use super::decided_webhooks::{self, PolicyGrant};
use super::record::PolicyRecord;
use super::replica_report::LEASE;
use super::webhook_kinds::{POLICY_KINDS, webhook_kind};
use crate::modules::event::{CONFIG_MAP, HOST_MODULE, MODULE};

/// The caches that the leader reads.
pub(super) struct LeaderViews {
    /// Records, and reports of replicas, in the namespace of the host.
    of_host: View,
    /// Modules and webhook configurations.
    of_cluster: View,
}

/// The objects of policies in the cluster at one time.
pub(super) struct LeaderSnapshot {
    /// The records that can be read.
    pub(super) records: Vec<PolicyRecord>,
    /// The names of the records that cannot be read: another version of the host may have written
    /// them, so what belongs to them stays.
    unreadable: BTreeSet<String>,
    modules: BTreeMap<String, Arc<Object>>,
    /// The webhook configurations, or why they cannot be read.
    pub(super) live: Result<LiveConfigurations, CacheReadError>,
    /// The Leases in the namespace of the host: reports of replicas, and others.
    pub(super) leases: Vec<Arc<Object>>,
}

impl LeaderViews {
    /// Opens the views, as the host and of a host in this namespace.
    pub(super) fn open(caches: &Caches, host: &ApiClient, namespace: &str) -> Self {
        let [validating, mutating] = POLICY_KINDS.map(|kind| webhook_kind(kind).clone());
        let of_host = [CONFIG_MAP.clone(), LEASE.clone()];
        let namespaces = Namespaces::Only([namespace.to_owned()].into());
        let of_cluster = [MODULE.clone(), validating, mutating];
        Self {
            of_host: caches.open(host, HOST_MODULE, &of_host, &namespaces),
            of_cluster: caches.open(host, HOST_MODULE, &of_cluster, &Namespaces::All),
        }
    }

    /// Reads the objects.
    ///
    /// # Errors
    /// If one of the kinds has not been listed yet or cannot be read. Webhook configurations that
    /// cannot be read are no error here: [`LeaderSnapshot::live`] has the reason.
    pub(super) fn read(&self) -> Result<LeaderSnapshot, CacheReadError> {
        let (of_host, of_cluster) = (self.of_host.snapshot(), self.of_cluster.snapshot());
        let mut records = Vec::new();
        let mut unreadable = BTreeSet::new();
        for object in of_host.list(&CONFIG_MAP, None, &any)? {
            // By its name alone: a record without its label still blocks the deletion of webhooks.
            let name = object.key.name();
            match PolicyRecord::read(&object) {
                Ok(record) => records.push(record),
                Err(_) if !name.starts_with(POLICY_PREFIX) => {}
                Err(_) => drop(unreadable.insert(name.to_string())),
            }
        }
        let live = match live(&of_cluster) {
            Err(error @ CacheReadError::NotSynced(_)) => return Err(error),
            live => live,
        };
        let modules = of_cluster.list(&MODULE, None, &any)?.into_iter();
        Ok(LeaderSnapshot {
            records,
            unreadable,
            modules: modules.map(|object| (object.key.name().to_string(), object)).collect(),
            live,
            leases: of_host.list(&LEASE, None, &any)?,
        })
    }
}

impl LeaderSnapshot {
    /// Whether the Module of a record lets its policy review.
    pub(super) fn grant(&self, record: &PolicyRecord) -> PolicyGrant {
        let module = self.modules.get(&record.module);
        decided_webhooks::grant(record, module.map(|module| &**module))
    }

    /// The configurations that the host has made and whose policy does not review, each with the
    /// kind of the policy. None if the configurations cannot be read.
    pub(super) fn orphans(&self) -> Vec<(PolicyKind, LiveConfiguration)> {
        self.live
            .iter()
            .flatten()
            .filter(|((kind, name), one)| one.is_of_host() && !self.has_policy(*kind, name))
            .map(|((kind, _), one)| (*kind, one.clone()))
            .collect()
    }

    /// Whether every configuration of the host trusts this bundle. False if they cannot be read.
    pub(super) fn trusts(&self, bundle: &str) -> bool {
        let Ok(live) = &self.live else { return false };
        live.values().all(|one| !one.is_of_host() || one.trusts(bundle))
    }

    /// Whether a policy of this kind whose configuration has this name reviews, or may do so, since
    /// its record cannot be read.
    fn has_policy(&self, kind: PolicyKind, name: &str) -> bool {
        if self.unreadable.contains(name) {
            return true;
        }
        let is_of = |record: &&PolicyRecord| policy_object_name(&record.module) == name;
        self.records.iter().find(is_of).is_some_and(|record| {
            let policy = record.manifest.policy.as_ref();
            policy.is_some_and(|policy| policy.kind == kind)
                && matches!(self.grant(record), PolicyGrant::Given)
        })
    }
}

fn any(_: &Labels) -> bool {
    true
}

/// The webhook configurations with names that belong to policies.
fn live(snapshot: &CacheSnapshot) -> Result<LiveConfigurations, CacheReadError> {
    let mut live = LiveConfigurations::new();
    for kind in POLICY_KINDS {
        for object in snapshot.list(webhook_kind(kind), None, &any)? {
            if let Some(configuration) = LiveConfiguration::of(&object) {
                live.insert((kind, object.key.name().to_string()), configuration);
            }
        }
    }
    Ok(live)
}
