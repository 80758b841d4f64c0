//! The part of policies that only the leader runs: it keeps the certificates and the webhook
//! configurations, and publishes the state of each policy.
//!
//! The leader works in rounds. Each round compares the caches with the records and the reports of
//! the replicas and keeps nothing for the next one, so that a new leader continues in any state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::FailurePolicy;
use innkeeper_admission::webhook_configuration::failure::Coverage;
use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{ApiClient, Caches};
use innkeeper_contract::PolicyKind;
use innkeeper_core::host_objects::{HOST_NAMESPACE, policy_object_name};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::admission_settings::AdmissionSettings;
use super::certificate_keeper::CertificateKeeper;
use super::configurations::{ConfigurationKey, Configurations, LiveConfiguration};
use super::coverage;
use super::decided_webhooks::{self, Endpoint, PolicyGrant};
use super::leader_events::LeaderEvents;
use super::leader_snapshot::{LeaderSnapshot, LeaderViews};
use super::policy_state::{PolicyProblem, PolicyState};
use super::record::PolicyRecord;
use super::replica_report::{Replica, live_replicas};
use super::replica_sweep::ReplicaSweep;
use super::webhook_kinds::webhook_kind;

/// The time between two rounds without a change. A round sends nothing if nothing has changed.
const ROUND: Duration = Duration::from_secs(10);

/// The pause after a round, in which further changes gather for the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// The reason of a policy whose webhook configuration cannot be written.
const WEBHOOKS_NOT_WRITTEN: &str = "WebhooksNotWritten";

/// Called with the name of a Module and the state of its policy when that changes; with `None` once
/// the Module has no policy.
pub type PublishState = Box<dyn Fn(&str, Option<PolicyState>) + Send + Sync>;

/// Keeps the certificates and the webhook configurations of all policies, as the leader.
pub struct PolicyLeader {
    host: ApiClient,
    namespace: String,
    settings: AdmissionSettings,
    wake: Arc<Notify>,
    views: LeaderViews,
    keeper: CertificateKeeper,
    configurations: Configurations,
    sweep: ReplicaSweep,
    publish: PublishState,
    published: BTreeMap<String, PolicyState>,
    /// The failure of the last round; the leader logs it once.
    failure: Option<String>,
}

impl PolicyLeader {
    /// The leader of the replicas, which reads and sends as the host.
    pub fn new(host: ApiClient, settings: AdmissionSettings, publish: PublishState) -> Self {
        let namespace = host.host_namespace().unwrap_or(HOST_NAMESPACE).to_owned();
        let wake = Arc::new(Notify::new());
        let events = Arc::new(LeaderEvents { wake: wake.clone() });
        let caches = Caches::new(host.env().clone(), events);
        Self {
            views: LeaderViews::open(&caches, &host, &namespace),
            keeper: CertificateKeeper::new(host.clone(), settings.clone(), &namespace),
            configurations: Configurations::new(host.clone()),
            sweep: ReplicaSweep::new(host.clone()),
            host,
            namespace,
            settings,
            wake,
            publish,
            published: BTreeMap::new(),
            failure: None,
        }
    }

    /// Leads until `stop` is true or its sender is dropped. Drops a request that is under way then;
    /// the first round of the next leader finds its outcome.
    pub async fn lead(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.run_rounds() => {}
        }
    }

    /// Runs rounds without end.
    async fn run_rounds(&mut self) {
        let env = self.host.env().clone();
        loop {
            self.round().await;
            env.sleep(PAUSE).await;
            tokio::select! {
                biased;
                () = self.wake.notified() => {}
                () = env.sleep(ROUND.saturating_sub(PAUSE)) => {}
            }
        }
    }

    /// Compares the caches with the records, and writes and deletes the objects that differ.
    async fn round(&mut self) {
        let snapshot = match self.views.read() {
            Ok(snapshot) => snapshot,
            // The caches wake the leader once they have listed everything.
            Err(CacheReadError::NotSynced(_)) => return,
            // Objects that cannot be read may exist: the round must not delete their
            // configurations.
            Err(error) => {
                return self.log_failure(Some(format!("the policies cannot be read: {error}")));
            }
        };
        let leases = snapshot.leases.iter().map(|lease| &**lease);
        let replicas = live_replicas(leases, self.host.env().now());
        let mut failure = self.delete_orphans(&snapshot).await;
        let is_trusted = |bundle: &str| snapshot.trusts(bundle);
        self.keeper.keep(is_trusted, |id| coverage::all_show(&replicas, id)).await;
        let mut states = BTreeMap::new();
        for record in &snapshot.records {
            let state = self.keep_configuration(record, &snapshot, &replicas).await;
            if let Some(problem) =
                state.problem.as_ref().filter(|one| one.reason == WEBHOOKS_NOT_WRITTEN)
            {
                failure = Some(problem.message.clone());
            }
            states.insert(record.module.clone(), state);
        }
        if let Err(error) = self.sweep.sweep(&snapshot.leases).await {
            failure = Some(format!("the report of a replica that is gone not deleted: {error}"));
        }
        self.log_failure(failure);
        self.publish(states);
    }

    /// Deletes the configurations that belong to no policy; returns the last failure.
    async fn delete_orphans(&mut self, snapshot: &LeaderSnapshot) -> Option<String> {
        let mut failure = None;
        for (kind, orphan) in snapshot.orphans() {
            if let Err(error) = self.configurations.delete(kind, &orphan).await {
                let name = orphan.object.key.name();
                failure = Some(format!("webhook configuration {name} not deleted: {error}"));
            }
        }
        failure
    }

    /// Writes the configuration of a record if it differs; returns the state of the policy.
    async fn keep_configuration(
        &mut self,
        record: &PolicyRecord,
        snapshot: &LeaderSnapshot,
        replicas: &[Replica],
    ) -> PolicyState {
        let mut state = state(record, replicas);
        match snapshot.grant(record) {
            PolicyGrant::Given => {}
            PolicyGrant::Missing => return state,
            PolicyGrant::BreakGlass(problem) => {
                state.problem = Some(problem);
                return state;
            }
        }
        let Some(policy) = &record.manifest.policy else { return state };
        let key = (policy.kind, policy_object_name(&record.module));
        let live = match &snapshot.live {
            Ok(live) => live.get(&key),
            Err(error) => {
                let message = format!("The webhook configurations cannot be read: {error}");
                state.problem = Some(PolicyProblem { reason: WEBHOOKS_NOT_WRITTEN, message });
                return state;
            }
        };
        if let Some(live) = live {
            state.set_configuration(&key, &live.document);
        }
        match self.write_configuration(record, policy.kind, live, replicas).await {
            Ok(Some(document)) => state.set_configuration(&key, &document),
            Ok(None) => {}
            Err(problem) => state.problem = Some(problem),
        }
        state
    }

    /// Writes the configuration of a record and returns it; `None` before a replica reviews with
    /// the policy, or the certificates are known.
    async fn write_configuration(
        &mut self,
        record: &PolicyRecord,
        kind: PolicyKind,
        live: Option<&LiveConfiguration>,
        replicas: &[Replica],
    ) -> Result<Option<Value>, PolicyProblem> {
        let bundle = match self.keeper.bundle() {
            Ok(bundle) => bundle,
            Err(None) => return Ok(None),
            Err(Some(error)) => {
                return Err(PolicyProblem {
                    reason: "CertificatesUnreadable",
                    message: format!("{error}; the webhook configuration stays as it is."),
                });
            }
        };
        // No replica would answer the requests.
        if live.is_none() && !coverage::any_answers(replicas, &record.module) {
            return Ok(None);
        }
        let endpoint = Endpoint { settings: &self.settings, namespace: &self.namespace, bundle };
        let coverage = Coverage {
            is_everywhere: coverage::all_answer(replicas, &record.module),
            was_everywhere: live.is_some_and(|live| {
                decided_webhooks::failure_policy_of(&live.document) == FailurePolicy::Fail
            }),
        };
        let Some(document) = decided_webhooks::configuration(record, endpoint, coverage) else {
            return Ok(None);
        };
        match self.configurations.write(kind, live, &document).await {
            Ok(()) => Ok(Some(document)),
            Err(error) => Err(PolicyProblem {
                reason: WEBHOOKS_NOT_WRITTEN,
                message: format!("The webhook configuration cannot be written: {error}"),
            }),
        }
    }

    /// Publishes the states that have changed.
    fn publish(&mut self, states: BTreeMap<String, PolicyState>) {
        for module in self.published.keys().filter(|module| !states.contains_key(*module)) {
            (self.publish)(module, None);
        }
        for (module, state) in &states {
            if self.published.get(module) != Some(state) {
                (self.publish)(module, Some(state.clone()));
            }
        }
        self.published = states;
    }

    /// Logs the failure of a round, unless it is that of the last round.
    fn log_failure(&mut self, failure: Option<String>) {
        if let Some(failure) = failure.as_ref().filter(|one| self.failure.as_ref() != Some(one)) {
            tracing::warn!("{failure}; the host tries again");
        }
        self.failure = failure;
    }
}

/// The state of a policy by the reports of the replicas.
fn state(record: &PolicyRecord, replicas: &[Replica]) -> PolicyState {
    let (module, id) = (&record.module, record.id());
    let (failed_reviews, failure_example) = coverage::failures(replicas, module, &id);
    PolicyState {
        reviewing: coverage::reviewing(replicas, module, &id),
        replicas: replicas.len(),
        not_reviewing: coverage::first_not_reviewing(replicas, module, &id),
        record: id,
        failure_policy: None,
        webhooks: None,
        problem: None,
        failed_reviews,
        failure_example,
    }
}

impl PolicyState {
    /// Shows the webhook configuration with this key.
    fn set_configuration(&mut self, (kind, name): &ConfigurationKey, document: &Value) {
        self.webhooks = Some(format!("{}/{name}", webhook_kind(*kind).plural));
        self.failure_policy = Some(decided_webhooks::failure_policy_of(document));
    }
}
