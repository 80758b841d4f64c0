//! A replica with policies that tests activate, on a simulated cluster.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::{
    AdmissionRequest, AdmissionResponse, Reviewed, Reviewer as _, WebhookRef,
};
use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{
    Account, Caches, Change, Cluster, Env, Listener, Namespaces, SecretDigestKey, Settings,
};
use innkeeper_lab::{Api, Setup};
use innkeeper_modules::{Digest, Module, SourceKind, ValidatedSpec};
use innkeeper_operator::policies::{ActivePolicy, PolicyRecord, PolicyReviewer, active_policy};
use innkeeper_operator::{Execution, ReplicaPolicies};
use innkeeper_sandbox::{Compile, Engine, Interruption, Limits};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The time that requests of the tests have.
pub(crate) const TIME: Duration = Duration::from_secs(10);

/// A replica with policies that tests activate.
pub(crate) struct Replica {
    pub(crate) policies: ReplicaPolicies,
    pub(crate) reviewer: PolicyReviewer,
    engine: Engine,
    cluster: Cluster,
    caches: Caches,
    simulator: Simulator,
}

/// Nobody waits for changes of the caches.
struct Quiet;

impl Listener for Quiet {
    fn changed(&self, _: &Change) {}

    fn state_changed(&self, _: &StateChange) {}
}

impl Replica {
    /// A replica without policies, whose host runs in the namespace `operators`.
    pub(crate) fn new() -> Self {
        let engine = Engine::builder()
            .compile(Compile::InProcess)
            .interruption(Interruption::Fuel)
            .guests(4)
            .review_permits(4)
            .build()
            .unwrap();
        let simulator = Simulator::with(1, Setup::new(1).start, Controllers::default());
        let env = Env::scripted(1, simulator.now());
        let key = SecretDigestKey::new(b"k").kept_in("operators");
        let cluster = Cluster::over(simulator.clone(), env.clone(), Settings::default(), key);
        let policies = ReplicaPolicies::new(env.clone(), &engine, Execution::Inline).unwrap();
        let caches = Caches::new(env, Arc::new(Quiet));
        let reviewer = PolicyReviewer::new(policies.clone());
        Self { policies, reviewer, engine, cluster, caches, simulator }
    }

    /// The API of the cluster.
    pub(crate) fn api(&self) -> Api {
        Api::simulated(self.simulator.clone())
    }

    /// Makes this guest the active policy of a module with these fields in its spec. It reads as
    /// the ServiceAccount with the name of the module.
    pub(crate) async fn activate(&self, module: &str, tiny: &Tiny, spec: Value) {
        let component = tiny.component();
        let guest = self.engine.load(&component, &Limits::default()).unwrap();
        let mut object = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": module}, "spec": spec});
        object["spec"]["source"] = json!({"configMap": {"name": module}});
        object["spec"]["serviceAccountName"] = json!(module);
        let object = Module::from_value(&object).unwrap();
        let settings =
            ValidatedSpec::new(&object, SourceKind::Cluster, Limits::default(), None).unwrap();
        let digest = Digest::of(&component);
        let record = PolicyRecord::new(module, "u", digest, guest.manifest(), &settings).unwrap();
        let client = self.cluster.as_account(&Account::new("innkeeper-modules", module));
        let kinds = active_policy::reads(&guest);
        let view = self.caches.open(&client, module, &kinds, &Namespaces::All);
        view.settled().await;
        let policy = ActivePolicy::new(&record, &guest, client, Some(view)).unwrap();
        self.policies.active().swap(&Arc::new(policy));
    }

    /// Reviews a request for the first webhook of a module.
    pub(crate) async fn review(&self, module: &str, request: &Value) -> Reviewed {
        self.review_at(module, 0, request, TIME).await
    }

    /// Reviews a request that has this time.
    pub(crate) async fn review_at(
        &self,
        module: &str,
        webhook: usize,
        request: &Value,
        time: Duration,
    ) -> Reviewed {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": request});
        let body = body.to_string();
        let request = AdmissionRequest::read(body.as_bytes()).unwrap();
        let webhook = WebhookRef { module: module.to_owned(), index: webhook };
        self.reviewer.review(webhook, request, (Instant::now() + time).into_std()).await
    }

    /// The value of a metric of the replica.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let metrics = self.policies.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0, |value| value.trim().parse().unwrap())
    }
}

/// A request that creates a ConfigMap in the namespace `ns`.
pub(crate) fn create() -> Value {
    json!({"uid": "u", "operation": "CREATE", "namespace": "ns", "name": "a",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "userInfo": {"username": "ann"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "ns"}, "data": {"value": "x"}}})
}

/// The response of a review that gives one.
pub(crate) fn answer(reviewed: Reviewed) -> AdmissionResponse {
    match reviewed {
        Reviewed::Answer(response) => response,
        other => panic!("{other:?}"),
    }
}

/// Why a review failed.
pub(crate) fn failure(reviewed: Reviewed) -> String {
    match reviewed {
        Reviewed::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}
