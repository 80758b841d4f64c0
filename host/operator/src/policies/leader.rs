//! What only the leader does for policies: certificates, webhook configurations, and what it says
//! of both.
//!
//! It works in rounds, and each of them compares what the caches have with what is to be. So a new
//! leader goes on where the last one was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::webhook_configuration::failure::Coverage;
use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{ApiClient, Caches};
use innkeeper_core::host_objects::HOST_NAMESPACE;
use tokio::sync::{Notify, watch};

use super::admission_settings::AdmissionSettings;
use super::certificate_keeper::CertificateKeeper;
use super::configurations::{Configurations, LiveConfiguration};
use super::coverage;
use super::decided_webhooks::{self, Consent, Endpoint};
use super::leader_events::LeaderEvents;
use super::policy_state::{PolicyProblem, PolicyState};
use super::present::{LeaderViews, Present};
use super::record::PolicyRecord;
use super::record_keeper::WEBHOOK_CONFIGURATIONS;
use super::replica_report::{Replica, live_replicas};
use super::replica_sweep::ReplicaSweep;

/// The time between two rounds without a change, which send nothing if nothing is to be done.
const ROUND: Duration = Duration::from_secs(10);

/// The time for which a round waits for further changes.
const PAUSE: Duration = Duration::from_millis(100);

/// The reason of a configuration that cannot be written.
const NOT_WRITTEN: &str = "WebhooksNotWritten";

/// Gets what the leader knows of the policy of a Module, when it changes; `None` once there is no
/// policy.
pub type PublishState = Box<dyn Fn(&str, Option<PolicyState>) + Send + Sync>;

/// What only the leader does for policies.
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
    /// The last failure, which is logged once.
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

    /// Leads until `stop` is true or its sender is dropped. A request that is under way then is
    /// given up: the next leader compares with what is there.
    pub async fn lead(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.keep() => {}
        }
    }

    /// Never ends.
    async fn keep(&mut self) {
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

    /// Makes everything what it is to be.
    async fn round(&mut self) {
        let present = match self.views.read() {
            Ok(present) => present,
            // The caches wake the leader once they have listed everything.
            Err(CacheReadError::NotSynced(_)) => return,
            // What cannot be read is not taken for missing.
            Err(error) => {
                return self.note(Some(format!("the policies cannot be read: {error}")));
            }
        };
        let leases = present.leases.iter().map(|lease| &**lease);
        let replicas = live_replicas(leases, self.host.env().now());
        let mut failure = self.delete_orphans(&present).await;
        let is_trusted = |bundle: &str| present.trusts(bundle);
        self.keeper.keep(is_trusted, |id| coverage::all_show(&replicas, id)).await;
        let mut states = BTreeMap::new();
        for record in &present.records {
            let state = self.keep_configuration(record, &present, &replicas).await;
            if let Some(problem) = state.problem.as_ref().filter(|one| one.reason == NOT_WRITTEN) {
                failure = Some(problem.message.clone());
            }
            states.insert(record.module.clone(), state);
        }
        if let Err(error) = self.sweep.sweep(&present.leases).await {
            failure = Some(format!("the report of a replica that is gone not deleted: {error}"));
        }
        self.note(failure);
        self.publish(states);
    }

    /// Deletes the configurations that belong to no policy; returns what could not be deleted.
    async fn delete_orphans(&mut self, present: &Present) -> Option<String> {
        let mut failure = None;
        for (kind, orphan) in present.orphans() {
            if let Err(error) = self.configurations.delete(kind, &orphan).await {
                let name = orphan.object.key.name();
                failure = Some(format!("webhook configuration {name} not deleted: {error}"));
            }
        }
        failure
    }

    /// Makes the configuration of a record what it is to be.
    async fn keep_configuration(
        &mut self,
        record: &PolicyRecord,
        present: &Present,
        replicas: &[Replica],
    ) -> PolicyState {
        let mut state = state(record, replicas);
        match present.consent(record) {
            Consent::Given => {}
            Consent::None => return state,
            Consent::BreakGlass(problem) => {
                state.problem = Some(problem);
                return state;
            }
        }
        let Some(policy) = &record.manifest.policy else { return state };
        let position = decided_webhooks::kind_position(policy.kind);
        let name = PolicyRecord::name(&record.module);
        let live = match &present.live {
            Ok(live) => live.get(position).and_then(|all| all.get(&name)),
            Err(error) => {
                let message = format!("The webhook configurations cannot be read: {error}");
                state.problem = Some(PolicyProblem { reason: NOT_WRITTEN, message });
                return state;
            }
        };
        if let Some(live) = live {
            state.show_webhooks(position, &name);
            state.failure_policy = Some(decided_webhooks::shown(&live.document));
        }
        let result = self.write_configuration(record, live, replicas).await;
        match result {
            Ok(Some(document)) => {
                state.show_webhooks(position, &name);
                state.failure_policy = Some(decided_webhooks::shown(&document));
            }
            Ok(None) => {}
            Err(problem) => state.problem = Some(problem),
        }
        state
    }

    /// Writes the configuration of a record; returns it. `None` if there is to be none yet.
    async fn write_configuration(
        &mut self,
        record: &PolicyRecord,
        live: Option<&LiveConfiguration>,
        replicas: &[Replica],
    ) -> Result<Option<serde_json::Value>, PolicyProblem> {
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
        // Requests would wait for nobody.
        if live.is_none() && !coverage::any_answers(replicas, &record.module) {
            return Ok(None);
        }
        let endpoint = Endpoint { settings: &self.settings, namespace: &self.namespace, bundle };
        let coverage = Coverage {
            is_everywhere: coverage::all_answer(replicas, &record.module),
            was_everywhere: live.is_some_and(|live| decided_webhooks::fails(&live.document)),
        };
        let Some((position, document)) =
            decided_webhooks::configuration(record, endpoint, coverage)
        else {
            return Ok(None);
        };
        match self.configurations.write(position, live, &document).await {
            Ok(()) => Ok(Some(document)),
            Err(error) => Err(PolicyProblem {
                reason: NOT_WRITTEN,
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

    /// Logs a failure once.
    fn note(&mut self, failure: Option<String>) {
        if let Some(failure) = failure.as_ref().filter(|one| self.failure.as_ref() != Some(one)) {
            tracing::warn!("{failure}; it is tried again");
        }
        self.failure = failure;
    }
}

/// What the replicas say of a record.
fn state(record: &PolicyRecord, replicas: &[Replica]) -> PolicyState {
    let (module, id) = (&record.module, record.id());
    let (failed, failure) = coverage::failures(replicas, module, &id);
    PolicyState {
        reviewing: coverage::reviewing(replicas, module, &id),
        replicas: replicas.len(),
        lack: coverage::first_lack(replicas, module, &id),
        record: id,
        failure_policy: None,
        webhooks: None,
        problem: None,
        failed,
        failure,
    }
}

impl PolicyState {
    fn show_webhooks(&mut self, position: usize, name: &str) {
        let kind = WEBHOOK_CONFIGURATIONS.get(position);
        self.webhooks = kind.map(|kind| format!("{}/{name}", kind.plural));
    }
}
