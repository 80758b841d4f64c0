//! What the cluster has of policies at one time, as the caches of the leader have it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_cluster::cache::{CacheReadError, CacheSnapshot};
use innkeeper_cluster::{ApiClient, Caches, Namespaces, View};
use innkeeper_contract::Kind;
use innkeeper_core::host_objects::POLICY_PREFIX;
use innkeeper_core::{Labels, Object};

use super::configurations::{Live, LiveConfiguration};
use super::decided_webhooks::{self, Consent};
use super::record::PolicyRecord;
use super::record_keeper::WEBHOOK_CONFIGURATIONS;
use super::replica_report::LEASE;
use crate::modules::event::{CONFIG_MAP, HOST_MODULE, MODULE};

/// What the leader reads.
pub(super) struct LeaderViews {
    /// Records, and reports of replicas, in the namespace of the host.
    of_host: View,
    /// Modules and webhook configurations.
    of_cluster: View,
}

/// What is in the cluster at one time.
pub(super) struct Present {
    /// The records that can be read.
    pub(super) records: Vec<PolicyRecord>,
    /// The names of the records that cannot be read: another version of the host may have written
    /// them, so what belongs to them stays.
    unreadable: BTreeSet<String>,
    modules: BTreeMap<String, Arc<Object>>,
    /// The webhook configurations, or why they cannot be read.
    pub(super) live: Result<Live, CacheReadError>,
    /// The Leases in the namespace of the host: reports of replicas, and others.
    pub(super) leases: Vec<Arc<Object>>,
}

impl LeaderViews {
    /// Opens the views, as the host and of a host in this namespace.
    pub(super) fn open(caches: &Caches, host: &ApiClient, namespace: &str) -> Self {
        let [validating, mutating] = WEBHOOK_CONFIGURATIONS.clone();
        let of_host = [CONFIG_MAP.clone(), LEASE.clone()];
        let namespaces = Namespaces::Only([namespace.to_owned()].into());
        let of_cluster = [MODULE.clone(), validating, mutating];
        Self {
            of_host: caches.open(host, HOST_MODULE, &of_host, &namespaces),
            of_cluster: caches.open(host, HOST_MODULE, &of_cluster, &Namespaces::All),
        }
    }

    /// Reads what is in the cluster.
    ///
    /// # Errors
    /// If one of the kinds cannot be read, or has not been yet. Only of webhook configurations that
    /// cannot be read [`Present::live`] says so.
    pub(super) fn read(&self) -> Result<Present, CacheReadError> {
        let (of_host, of_cluster) = (self.of_host.snapshot(), self.of_cluster.snapshot());
        let mut records = Vec::new();
        let mut unreadable = BTreeSet::new();
        for object in of_host.list(&CONFIG_MAP, None, &any)? {
            // By its name alone: a record that has lost its label still counts as one.
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
        Ok(Present {
            records,
            unreadable,
            modules: modules.map(|object| (object.key.name().to_string(), object)).collect(),
            live,
            leases: of_host.list(&LEASE, None, &any)?,
        })
    }
}

impl Present {
    /// Whether the Module of a record lets its policy review.
    pub(super) fn consent(&self, record: &PolicyRecord) -> Consent {
        let module = self.modules.get(&record.module);
        decided_webhooks::consent(record, module.map(|module| &**module))
    }

    /// The configurations of the host that belong to no policy that reviews: position of the kind
    /// and configuration.
    pub(super) fn orphans(&self) -> Vec<(usize, LiveConfiguration)> {
        let all = self.live.iter().flatten().enumerate();
        let all =
            all.flat_map(|(kind, live)| live.iter().map(move |(name, one)| (kind, name, one)));
        all.filter(|(kind, name, one)| one.is_of_host() && !self.has_policy(*kind, name))
            .map(|(kind, _, one)| (kind, one.clone()))
            .collect()
    }

    /// Whether every configuration of the host trusts this bundle. False if they cannot be read.
    pub(super) fn trusts(&self, bundle: &str) -> bool {
        let Ok(live) = &self.live else { return false };
        let mut all = live.iter().flat_map(BTreeMap::values);
        all.all(|one| !one.is_of_host() || one.trusts(bundle))
    }

    /// Whether a policy reviews, or may do so, whose configuration has this kind and name.
    fn has_policy(&self, kind: usize, name: &str) -> bool {
        if self.unreadable.contains(name) {
            return true;
        }
        let is_of = |record: &&PolicyRecord| PolicyRecord::name(&record.module) == name;
        self.records.iter().find(is_of).is_some_and(|record| {
            let policy = record.manifest.policy.as_ref();
            policy.is_some_and(|policy| decided_webhooks::kind_position(policy.kind) == kind)
                && matches!(self.consent(record), Consent::Given)
        })
    }
}

fn any(_: &Labels) -> bool {
    true
}

/// The webhook configurations by kind and name.
fn live(snapshot: &CacheSnapshot) -> Result<Live, CacheReadError> {
    let of = |kind: &Kind| -> Result<BTreeMap<String, LiveConfiguration>, CacheReadError> {
        let objects = snapshot.list(kind, None, &any)?;
        let named = |object: &Arc<Object>| {
            Some((object.key.name().to_string(), LiveConfiguration::of(object)?))
        };
        Ok(objects.iter().filter_map(named).collect())
    };
    let [validating, mutating] = &*WEBHOOK_CONFIGURATIONS;
    Ok([of(validating)?, of(mutating)?])
}
