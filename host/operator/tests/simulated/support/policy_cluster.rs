//! A simulated cluster with the records and snapshots of policies, and replicas that follow them
//! without a leader.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings, Task};
use innkeeper_contract::Manifest;
use innkeeper_core::Object;
use innkeeper_lab::{Api, Content};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::{Component, Digest, Module, SourceKind, ValidatedSpec, chunks};
use innkeeper_operator::Execution;
use innkeeper_operator::policies::replica_report::LEASE;
use innkeeper_operator::policies::{
    ActivePolicy, Entry, PolicyFollower, PolicyRecord, Replica as Reported, ReplicaName,
    ReplicaPolicies, live_replicas,
};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Compile, Engine, Limits,
};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_tiny_guests::{POLICY_MANIFEST, Tiny};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::proxy::Proxy;

/// The namespace of the host.
pub(crate) const HOST: &str = "innkeeper-system";
const RBAC: &str = "rbac.authorization.k8s.io";
/// How often a test looks whether something holds, in virtual time.
const STEP: Duration = Duration::from_millis(10);
/// How long the tests wait for anything, in virtual time.
const LIMIT: Duration = Duration::from_mins(10);

/// A cluster in which the policies act as the account of the same name.
pub(crate) struct PolicyCluster {
    pub(crate) simulator: Simulator,
    pub(crate) api: Api,
}

impl PolicyCluster {
    /// A cluster whose account `labels` lets the module `labels` act as it.
    pub(crate) async fn new() -> Self {
        let start = innkeeper_lab::Setup::new(1).start;
        let simulator = Simulator::with(1, start, Controllers::default());
        let cluster = Self { api: Api::simulated(simulator.clone()), simulator };
        for name in [HOST, "innkeeper-modules"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.apply(&namespace).await;
        }
        cluster.put_account("labels", json!("labels")).await;
        cluster
    }

    pub(crate) async fn apply(&self, object: &Value) {
        self.api.apply(object, HOST).await.unwrap();
    }

    /// An account that may read all ConfigMaps, and lets these modules act as it.
    pub(crate) async fn put_account(&self, name: &str, modules: Value) {
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch"]}]);
        for object in [
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": "innkeeper-modules",
                    "annotations": {"innkeeper.dev/allowed-modules": modules}}}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
                "metadata": {"name": name}, "rules": rules}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name,
                    "namespace": "innkeeper-modules"}]}),
        ] {
            self.apply(&object).await;
        }
    }

    /// Makes the snapshot of a component of a module.
    pub(crate) async fn put_snapshot(&self, module: &str, component: &[u8]) {
        self.put_snapshot_of(module, Digest::of(component), component).await;
    }

    /// The same under the name of another component.
    pub(crate) async fn put_snapshot_of(&self, module: &str, digest: Digest, bytes: &[u8]) {
        let component = Component { bytes: bytes.into(), digest: Digest::of(bytes) };
        let name = snapshot_name(module, digest);
        for config_map in chunks::config_maps(&name, &component, &Map::new()) {
            self.apply(&config_map).await;
        }
    }

    /// Writes a record.
    pub(crate) async fn put_record(&self, record: &PolicyRecord) {
        self.apply(&record.config_map(HOST).unwrap()).await;
    }

    /// Decides that a module reviews with this verdict, as a leader does.
    pub(crate) async fn decide(&self, module: &str, verdict: &str, spec: &Value) -> PolicyRecord {
        let component = Tiny::policy(verdict).component();
        self.put_snapshot(module, &component).await;
        let record = record(module, &component, spec);
        self.put_record(&record).await;
        record
    }

    /// Lays a merge patch over the object at a path.
    pub(crate) async fn merge(&self, path: &str, change: &Value) {
        self.api.send("PATCH", path, Content::MergePatch, change).await.unwrap();
    }
}

/// The record of a module whose guest has the manifest of the tests.
pub(crate) fn record(module: &str, component: &[u8], spec: &Value) -> PolicyRecord {
    let manifest: Manifest = serde_json::from_str(POLICY_MANIFEST).unwrap();
    let mut spec = spec.clone();
    spec["source"] = json!({"configMap": {"name": module}});
    if spec["serviceAccountName"].is_null() {
        spec["serviceAccountName"] = json!(module);
    }
    if spec["policy"].is_null() {
        spec["policy"] = json!({});
    }
    let object = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": module}, "spec": spec});
    let object = Module::from_value(&object).unwrap();
    let settings =
        ValidatedSpec::new(&object, SourceKind::Cluster, Limits::default(), None).unwrap();
    PolicyRecord::new(module, "uid-1", Digest::of(component), &manifest, &settings).unwrap()
}

/// The path of the record of a module.
pub(crate) fn record_path(module: &str) -> String {
    format!("/api/v1/namespaces/{HOST}/configmaps/innkeeper-policy-{module}")
}

/// The path of the snapshot of a module's component.
pub(crate) fn snapshot_path(module: &str, component: &[u8]) -> String {
    let name = snapshot_name(module, Digest::of(component));
    format!("/api/v1/namespaces/innkeeper-modules/configmaps/{name}")
}

/// The path of the Lease with the report of a replica.
pub(crate) fn lease_path(replica: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{HOST}/leases/innkeeper-replica-{replica}")
}

/// One process of the host that follows the records.
pub(crate) struct Replica {
    pub(crate) env: Env,
    pub(crate) engine: Engine,
    pub(crate) policies: ReplicaPolicies,
    pub(crate) proxy: Proxy,
    stop: watch::Sender<bool>,
    task: Task<()>,
    _code: tempfile::TempDir,
}

impl Replica {
    /// Starts a replica of this name.
    pub(crate) fn start(simulator: &Simulator, name: &str) -> Self {
        Self::over(Proxy::new(simulator.clone()), simulator, name)
    }

    /// The same over a proxy.
    pub(crate) fn over(proxy: Proxy, simulator: &Simulator, name: &str) -> Self {
        let code = tempfile::tempdir().unwrap();
        let folder = CacheFolder::open(code.path()).unwrap();
        let cache = CodeCache::open(folder, &CacheKey::Kept, CACHE_BYTES_DEFAULT).unwrap();
        let engine = Engine::builder()
            .compile(Compile::InProcess)
            .permits(2)
            .review_permits(2)
            .cache(cache)
            .build()
            .unwrap();
        let env = Env::scripted(3, simulator.now());
        let key = SecretDigestKey::new(b"simulated");
        let cluster = Cluster::over(proxy.clone(), env.clone(), Settings::default(), key);
        let policies = ReplicaPolicies::new(env.clone(), &engine, Execution::Inline).unwrap();
        let name = ReplicaName::of(name);
        let follower = PolicyFollower::new(cluster, engine.clone(), policies.clone(), name);
        let (stop, stopped) = watch::channel(false);
        let task = env.spawn("follow", follower.follow(stopped));
        Self { env, engine, policies, proxy, stop, task, _code: code }
    }

    /// The policy of a module, if it is active.
    pub(crate) fn policy(&self, module: &str) -> Option<Arc<ActivePolicy>> {
        match self.policies.active().get(module, self.env.instant()) {
            Some(Entry::Active(policy)) => Some(policy),
            Some(Entry::Removed { .. }) | None => None,
        }
    }

    /// Whether the replica reviews with a record.
    pub(crate) fn reviews_with(&self, record: &PolicyRecord) -> bool {
        self.policy(&record.module).is_some_and(|policy| policy.id == record.id())
    }

    /// Why the newest record of a module is not active.
    pub(crate) fn problem(&self, module: &str) -> Option<String> {
        self.policies.problems().borrow().get(module).cloned()
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.env.sleep(time).await;
    }

    /// Waits until something holds, at most for [`LIMIT`]; gives how long it took, in virtual time.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
        let begun = self.env.instant();
        while !holds() {
            let passed = self.env.instant().duration_since(begun);
            assert!(
                passed < LIMIT,
                "not in time: {what}; problems: {:?}",
                *self.policies.problems().borrow()
            );
            self.pass(STEP).await;
        }
        self.env.instant().duration_since(begun)
    }

    /// Waits until the replica reviews with a record.
    pub(crate) async fn until_active(&self, record: &PolicyRecord) -> Duration {
        self.until("the record is active", || self.reviews_with(record)).await
    }

    /// Waits until a problem of a module is reported; gives it.
    pub(crate) async fn until_problem(&self, module: &str) -> String {
        self.until("a problem is reported", || self.problem(module).is_some()).await;
        self.problem(module).unwrap()
    }

    /// Ends the replica as a shutdown does.
    pub(crate) async fn end(self) {
        let _ = self.stop.send(true);
        assert!(self.task.await.is_some(), "it panicked");
    }

    /// Ends the replica as a crash does.
    pub(crate) fn crash(self) {
        drop(self.task);
    }
}

/// The replicas that the leader takes for alive now, by the Leases in the cluster.
pub(crate) async fn live(api: &Api, env: &Env) -> Vec<Reported> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{HOST}/leases");
    let leases: Vec<Object> = (api.list(&path).await.unwrap().iter())
        .map(|lease| Object::decode(&LEASE, &lease.to_string(), None).unwrap())
        .collect();
    live_replicas(&leases, env.now())
}
