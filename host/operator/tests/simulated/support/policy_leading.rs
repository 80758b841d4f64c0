//! A leader of policies, and the reports of its replicas.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_admission::certificates::Lifetimes;
use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings, Task};
use innkeeper_lab::Api;
use innkeeper_operator::policies::replica_report::PolicyReport;
use innkeeper_operator::policies::{
    AdmissionEndpoint, AdmissionSettings, PolicyLeader, PolicyState, ReplicaName, ReplicaReport,
};
use innkeeper_simulator::Simulator;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::policy_cluster::{HOST, lease_path};
use super::proxy::Proxy;
use super::stage::{Setup, Stage};

/// How often the replicas report, in virtual time.
const PERIOD: Duration = Duration::from_secs(10);

/// The webhook configuration of the policy of `scripts`.
pub(crate) const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/innkeeper-policy-scripts";

/// The certificates of the admission server.
pub(crate) const SECRET: &str = "/api/v1/namespaces/innkeeper-system/secrets/innkeeper-admission";

/// A module that only reviews, with a record.
pub(crate) async fn stage() -> Stage {
    let setup = Setup::of_component(Tiny::policy(ALLOWED).component());
    setup.spec(json!({ "policy": {} })).start().await
}

/// The webhook configuration of the module of a stage.
pub(crate) async fn webhooks(stage: &Stage) -> Value {
    stage.get(WEBHOOKS).await.unwrap()
}

/// What the replicas report, by name.
pub(crate) type Reports = BTreeMap<String, ReplicaReport>;

/// How the API server reaches the replicas.
pub(crate) fn settings() -> AdmissionSettings {
    let endpoint = AdmissionEndpoint::Service { name: "innkeeper-admission".to_owned(), port: 443 };
    AdmissionSettings { endpoint, lifetimes: Lifetimes::default() }
}

/// A connection to a simulated cluster, with a clock of its own.
pub(crate) fn cluster(simulator: &Simulator, proxy: &Proxy) -> Cluster {
    let env = Env::scripted(3, simulator.now());
    Cluster::over(proxy.clone(), env, Settings::default(), SecretDigestKey::new(b"simulated"))
}

/// A replica that shows the certificate `c` and reviews with this record of `scripts`.
pub(crate) fn reviewing(name: &str, id: &str) -> (String, ReplicaReport) {
    certified(name, "c", id)
}

/// The same with another certificate.
pub(crate) fn certified(name: &str, certificate: &str, id: &str) -> (String, ReplicaReport) {
    let policy = PolicyReport { id: Some(id.to_owned()), ..PolicyReport::default() };
    let policies = BTreeMap::from([("scripts".to_owned(), policy)]);
    (name.to_owned(), ReplicaReport { certificate: Some(certificate.to_owned()), policies })
}

/// A replica without policies.
pub(crate) fn idle(name: &str) -> (String, ReplicaReport) {
    let certificate = Some("c".to_owned());
    (name.to_owned(), ReplicaReport { certificate, policies: BTreeMap::new() })
}

/// A leader of policies, and its replicas, which report every [`PERIOD`].
pub(crate) struct Leader {
    replicas: watch::Sender<Reports>,
    pub(crate) states: Arc<Mutex<BTreeMap<String, PolicyState>>>,
    pub(crate) stop: watch::Sender<bool>,
    leading: Task<()>,
    _reporting: Task<()>,
}

impl Leader {
    /// A leader of these replicas next to the operator of a stage.
    pub(crate) fn of_stage<const N: usize>(
        stage: &Stage,
        replicas: [(String, ReplicaReport); N],
    ) -> Self {
        let cluster = cluster(stage.simulator(), stage.proxy());
        Self::start(&cluster, stage.api(), replicas.into())
    }

    /// A leader of these replicas.
    pub(crate) fn start(cluster: &Cluster, api: &Api, replicas: Reports) -> Self {
        let env = cluster.env();
        let (replicas, reported) = watch::channel(replicas);
        let reporting = env.spawn("report", report(env.clone(), api.clone(), reported));
        let states: Arc<Mutex<BTreeMap<String, PolicyState>>> = Arc::default();
        let published = states.clone();
        let publish = Box::new(move |module: &str, state: Option<PolicyState>| {
            let mut states = published.lock().unwrap();
            match state {
                Some(state) => drop(states.insert(module.to_owned(), state)),
                None => drop(states.remove(module)),
            }
        });
        let (stop, stopped) = watch::channel(false);
        let leader = PolicyLeader::new(cluster.host(), settings(), publish);
        let leading = env.spawn("lead", leader.lead(stopped));
        Self { replicas, states, stop, leading, _reporting: reporting }
    }

    /// Replaces the replicas that report; the reports of others are deleted.
    pub(crate) fn set_replicas(&self, replicas: impl Into<Reports>) {
        self.replicas.send_replace(replicas.into());
    }

    /// What the leader knows of the policy of `scripts`.
    pub(crate) fn state(&self) -> PolicyState {
        self.states.lock().unwrap().get("scripts").cloned().unwrap()
    }

    /// Ends the leader as a loss of the leadership does; the reports stay.
    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        assert!(self.leading.await.is_some(), "the leader ended otherwise");
    }
}

/// Writes the reports at each change and every [`PERIOD`].
async fn report(env: Env, api: Api, mut reports: watch::Receiver<Reports>) {
    let mut before = Reports::new();
    loop {
        let now = reports.borrow_and_update().clone();
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            api.delete(&lease_path(name)).await.unwrap();
        }
        for (name, report) in &now {
            let lease = report.lease(HOST, &ReplicaName::of(name), env.now());
            api.apply(&lease, HOST).await.unwrap();
        }
        before = now;
        tokio::select! {
            biased;
            changed = reports.changed() => if changed.is_err() { return },
            () = env.sleep(PERIOD) => {}
        }
    }
}
