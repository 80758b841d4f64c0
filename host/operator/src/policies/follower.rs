//! The follower of policy records: each replica opens the policy of each record and reviews with
//! it.
//!
//! Whenever a record or an account may have changed, the follower compares all of them with the
//! policies that it has opened. A record that cannot be read or loaded leaves the previous revision
//! active, and concerns no other policy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Caches, Cluster, KindState, Namespaces, View};
use innkeeper_contract::Kind;
use innkeeper_core::host_objects::{HOST_NAMESPACE, POLICY_PREFIX};
use innkeeper_core::{Object, foreign};
use innkeeper_modules::module::NAMESPACE;
use innkeeper_sandbox::Engine;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::active_policy::ActivePolicy;
use super::followed_policy::{FollowedPolicy, RecordToOpen};
use super::follower_events::FollowerEvents;
use super::load::{OpenError, PolicyOpener};
use super::record::PolicyRecord;
use super::replica::ReplicaPolicies;
use super::replica_name::ReplicaName;
use super::replica_reporter::ReplicaReporter;
use crate::modules::account_access::AccountAccess;
use crate::modules::event::{CONFIG_MAP, HOST_MODULE, SERVICE_ACCOUNT};

/// How long the first policy of a module waits at most for the lists of the kinds that it reads.
/// The replica does not answer for the module meanwhile.
const FIRST_READS_TIME: Duration = Duration::from_secs(30);

/// The same for a policy that replaces another one.
const READS_TIME: Duration = Duration::from_secs(5);

/// The longest reason in a message why a record is not active, in bytes.
const PROBLEM_BYTES_MAX: usize = 1_000;

/// Follows the policy records of the host and activates their policies. Each process has one, which
/// lives through all terms of leadership.
pub struct PolicyFollower {
    cluster: Cluster,
    engine: Engine,
    policies: ReplicaPolicies,
    replica: ReplicaName,
}

/// The result of a task that opens a policy.
struct Opened {
    module: String,
    /// The number of the task.
    number: u64,
    result: Result<ActivePolicy, OpenError>,
}

impl PolicyFollower {
    /// A follower that connects by `cluster`, whose fence is always open, since a standby reviews
    /// too, and whose key of Secrets is that of the host. `engine` loads the components, `policies`
    /// are those of the process, and `replica` is its name among the processes of the host.
    pub fn new(
        cluster: Cluster,
        engine: Engine,
        policies: ReplicaPolicies,
        replica: ReplicaName,
    ) -> Self {
        Self { cluster, engine, policies, replica }
    }

    /// Follows the records, and reports the active policies to the leader, until `stop` is true or
    /// its sender is dropped. Then it deletes the report; the policies stay active.
    pub async fn follow(self, mut stop: watch::Receiver<bool>) {
        let env = self.cluster.env().clone();
        let wake = Arc::new(Notify::new());
        let (outbox, mut inbox) = mpsc::unbounded_channel();
        let host = self.cluster.host();
        let reporter = ReplicaReporter::new(host, self.replica.clone(), self.policies.clone());
        let reporting = env.spawn("report of the replica", reporter.report(stop.clone()));
        let mut records = FollowedRecords::open(self, wake.clone(), outbox);
        loop {
            let wait = records.retry().map(|at| at.saturating_duration_since(env.instant()));
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(opened) = inbox.recv() => records.finish_opening(opened),
                () = wake.notified() => {}
                () = env.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
            records.step();
        }
        reporting.await;
    }
}

/// All records, with the policies that the replica has opened for them.
struct FollowedRecords {
    opener: Arc<PolicyOpener>,
    policies: ReplicaPolicies,
    /// The ConfigMaps in the namespace of the host.
    records: View,
    /// The metadata of the ServiceAccounts in the namespace of the modules.
    accounts: View,
    followed: BTreeMap<String, FollowedPolicy>,
    /// The modules whose records existed at the start and are not settled yet; `None` before the
    /// records were listed.
    awaited: Option<BTreeSet<String>>,
    /// The number of the last task that opens a policy.
    openings: u64,
    outbox: mpsc::UnboundedSender<Opened>,
}

impl FollowedRecords {
    /// Opens the host's views of the records and of the accounts.
    fn open(
        follower: PolicyFollower,
        wake: Arc<Notify>,
        outbox: mpsc::UnboundedSender<Opened>,
    ) -> Self {
        let PolicyFollower { cluster, engine, policies, .. } = follower;
        let host = cluster.host();
        let namespace = host.host_namespace().unwrap_or(HOST_NAMESPACE).to_owned();
        let observers = policies.observers().clone();
        let events = FollowerEvents { namespace: namespace.clone(), observers, wake };
        let caches = Caches::new(cluster.env().clone(), Arc::new(events));
        let of = std::slice::from_ref::<Kind>;
        let only = |namespace: &str| Namespaces::Only([namespace.to_owned()].into());
        let records = caches.open(&host, HOST_MODULE, of(&CONFIG_MAP), &only(&namespace));
        let accounts =
            caches.open_metadata(&host, HOST_MODULE, of(&SERVICE_ACCOUNT), &only(NAMESPACE));
        let execution = policies.execution();
        Self {
            opener: Arc::new(PolicyOpener::new(cluster, engine, execution, caches)),
            policies,
            records,
            accounts,
            followed: BTreeMap::new(),
            awaited: None,
            openings: 0,
            outbox,
        }
    }

    /// When the follower opens a record again that failed.
    fn retry(&self) -> Option<Instant> {
        self.followed.values().filter_map(FollowedPolicy::retry).min()
    }

    /// Compares the records and the accounts with the policies of the replica, and opens, closes
    /// and removes policies. Does nothing while the records cannot be listed.
    fn step(&mut self) {
        // Until the accounts are listed, it is unknown which policies may read.
        if self.accounts.states().values().any(|state| *state == KindState::Syncing) {
            return;
        }
        let snapshot = self.records.snapshot();
        let Ok(objects) = snapshot.list(&CONFIG_MAP, None, &|_| true) else { return };
        let present: BTreeMap<&str, &Object> =
            objects.iter().filter_map(|object| Some((module_of(object)?, &**object))).collect();
        self.awaited.get_or_insert_with(|| present.keys().map(ToString::to_string).collect());
        let is_gone = |module: &&String| !present.contains_key(module.as_str());
        let gone: Vec<String> = self.followed.keys().filter(is_gone).cloned().collect();
        for module in gone {
            self.remove(&module);
        }
        for (module, object) in present {
            self.follow(module, object);
        }
        self.check_complete();
    }

    /// Removes the policy of a module whose record is gone.
    fn remove(&mut self, module: &str) {
        let Some(mut followed) = self.followed.remove(module) else { return };
        tracing::info!(module, "policy removed");
        followed.revoke_all();
        self.policies.active().remove(module, self.policies.env().instant());
        self.policies.set_problem(module, None);
    }

    /// Compares the record of a module with the policy of the replica.
    fn follow(&mut self, module: &str, object: &Object) {
        let env = self.policies.env().clone();
        let mut followed =
            self.followed.remove(module).unwrap_or_else(|| FollowedPolicy::new(&env));
        followed.read(object);
        followed.revoke_denied(|account| {
            matches!(AccountAccess::of(&self.accounts, module, account), AccountAccess::Denied(_))
        });
        self.close_if_denied(&mut followed);
        match followed.record_to_open(env.instant(), |record| self.account_access(record)) {
            None => followed.stop_opening(),
            Some(next) if followed.is_opening(&next) => {}
            Some(next) => self.start_opening(&mut followed, next),
        }
        self.policies.set_problem(module, followed.problem());
        self.followed.insert(module.to_owned(), followed);
    }

    /// Whether the account of a record allows its module to act as it. A record without an account
    /// acts as none: the rights of the host are for no policy.
    fn account_access(&self, record: &PolicyRecord) -> AccountAccess {
        match &record.settings.service_account {
            Some(account) => AccountAccess::of(&self.accounts, &record.module, account),
            None => AccountAccess::Denied("the record names no ServiceAccount".to_owned()),
        }
    }

    /// Forbids all reads of an active policy whose account no longer lets its module act as it. The
    /// policy continues to review: otherwise a user who may change the account could switch it off.
    fn close_if_denied(&self, followed: &mut FollowedPolicy) {
        let Some(record) = followed.record_with_account().cloned() else { return };
        let AccountAccess::Denied(why) = self.account_access(&record) else { return };
        let Some(before) = followed.active().cloned() else { return };
        let module = &*record.module;
        tracing::warn!(module, "policy reviews without reads: {why}");
        match self.opener.closed(&record, &before.guest) {
            Ok(closed) => {
                let closed = Arc::new(closed.going_on_from(Some(&before)));
                self.policies.active().swap(&closed);
                followed.activate(RecordToOpen { record, acts_as_account: false }, closed);
            }
            // The record and the guest belong together: the follower has opened them before.
            Err(error) => tracing::error!(module, "policy cannot lose its reads: {error}"),
        }
    }

    /// Starts a task that opens a record.
    fn start_opening(&mut self, followed: &mut FollowedPolicy, next: RecordToOpen) {
        self.openings += 1;
        let number = self.openings;
        let module = next.record.module.clone();
        tracing::info!(module, record = next.record.id(), "policy opening");
        let (opener, outbox) = (self.opener.clone(), self.outbox.clone());
        let (record, access) = (next.record.clone(), followed.access(&next));
        let active = followed.active().cloned();
        let limit = if active.is_some() { READS_TIME } else { FIRST_READS_TIME };
        let task = self.policies.env().spawn("open policy", async move {
            let result = opener.open(&record, active.as_deref(), access, limit).await;
            // The send fails only if the follower has ended with the process.
            let _ = outbox.send(Opened { module, number, result });
        });
        followed.start_opening(number, next, task);
    }

    /// Activates the policy that a task has opened, unless another task has replaced it.
    fn finish_opening(&mut self, opened: Opened) {
        let Opened { module, number, result } = opened;
        let Some(mut followed) = self.followed.remove(&module) else { return };
        if let Some(opened) = followed.finish_opening(number) {
            match result {
                Ok(policy) => self.activate(&mut followed, opened, policy),
                Err(error) => {
                    let why = foreign::one_line(error, PROBLEM_BYTES_MAX);
                    let record = opened.record.id();
                    if followed.record_failure(self.policies.env().instant(), why.clone()) {
                        tracing::warn!(
                            module,
                            record,
                            "policy record not active: {why}; the host tries again"
                        );
                    }
                }
            }
        }
        self.followed.insert(module, followed);
    }

    fn activate(&self, followed: &mut FollowedPolicy, opened: RecordToOpen, policy: ActivePolicy) {
        let record = &opened.record;
        // The account was withdrawn meanwhile: the next step opens the policy without reads.
        if opened.acts_as_account && matches!(self.account_access(record), AccountAccess::Denied(_))
        {
            return;
        }
        tracing::info!(
            module = record.module, record = policy.id, digest = %record.digest.short(),
            "policy active on this replica"
        );
        let policy = Arc::new(policy.going_on_from(followed.active().map(|active| &**active)));
        self.policies.active().swap(&policy);
        followed.activate(opened, policy);
    }

    /// Marks the policies as complete once every record that existed at the start is settled.
    fn check_complete(&mut self) {
        let Some(awaited) = &mut self.awaited else { return };
        awaited.retain(|module| self.followed.get(module).is_some_and(|one| !one.is_settled()));
        if awaited.is_empty() && !self.policies.active().is_complete() {
            self.policies.active().set_complete();
        }
    }
}

/// The module whose record a ConfigMap holds, by its name; `None` for other ConfigMaps.
fn module_of(object: &Object) -> Option<&str> {
    object.key.name().strip_prefix(POLICY_PREFIX).filter(|module| !module.is_empty())
}
