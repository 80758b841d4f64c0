//! A cluster with a replica that leads, and its audit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_cluster::{Cluster, SecretDigestKey, Settings, Task};
use innkeeper_core::audit::AuditCounts;
use innkeeper_operator::policies::{AuditState, PolicyAudit};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::Sent;
use crate::support::policy_cluster::{PolicyCluster, Replica, record};

/// The path of the group of reports.
pub(crate) const REPORT: &str = "/apis/openreports.io/v1alpha1";

/// How long the tests wait for anything, in virtual time.
const LIMIT: Duration = Duration::from_mins(15);

/// How often a test looks whether something holds, in virtual time.
const STEP: Duration = Duration::from_millis(500);

type States = Arc<Mutex<BTreeMap<String, AuditState>>>;

/// A cluster with a replica that leads, and its audit. It has the ConfigMap `ns/cm`.
pub(crate) struct Bench {
    pub(crate) cluster: PolicyCluster,
    pub(crate) replica: Replica,
    states: States,
    stop: watch::Sender<bool>,
    task: Task<()>,
}

/// A ConfigMap with this text.
pub(crate) fn config_map(namespace: &str, name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text},
        "metadata": {"name": name, "namespace": namespace}})
}

/// How many objects pass, and how many are denied.
pub(crate) fn counts(pass: u64, fail: u64) -> AuditCounts {
    AuditCounts { pass, fail, ..AuditCounts::default() }
}

/// Definitions of reports, as the tests need them.
pub(crate) fn definitions() -> [Value; 2] {
    [("Report", "reports", "Namespaced"), ("ClusterReport", "clusterreports", "Cluster")].map(
        |(kind, plural, scope)| {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.openreports.io")},
                "spec": {"group": "openreports.io", "scope": scope,
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(),
                        "listKind": format!("{kind}List")},
                    "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": schema}}]}})
        },
    )
}

impl Bench {
    /// A cluster without policies.
    pub(crate) async fn new() -> Self {
        let cluster = PolicyCluster::new().await;
        for name in ["web", "ns"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.apply(&namespace).await;
        }
        cluster.apply(&config_map("ns", "cm", "open")).await;
        let replica = Replica::start(&cluster.simulator, "one");
        let (states, stop, task) = lead(&replica);
        Self { cluster, replica, states, stop, task }
    }

    /// The same cluster with another replica that leads now.
    pub(crate) async fn next_leader(self) -> Self {
        self.stop.send_replace(true);
        assert!(self.task.await.is_some(), "the audit ended otherwise");
        self.replica.end().await;
        let replica = Replica::start(&self.cluster.simulator, "two");
        let (states, stop, task) = lead(&replica);
        Self { cluster: self.cluster, replica, states, stop, task }
    }

    /// Ends the audit as a loss of the leadership does.
    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        assert!(self.task.await.is_some(), "the audit ended otherwise");
        let gauges = self.replica.policies.metrics();
        assert!(!gauges.contains("innkeeper_policy_audit_objects{"), "a standby shows nothing");
        self.replica.end().await;
    }

    /// Applies objects as an administrator.
    pub(crate) async fn apply(&self, objects: &[Value]) {
        for object in objects {
            self.cluster.apply(object).await;
        }
    }

    /// Deletes the object at a path.
    pub(crate) async fn delete(&self, path: &str) {
        self.cluster.api.delete(path).await.unwrap();
    }

    /// Decides that a module reviews with this guest, as a leader does, and waits until it is
    /// active.
    pub(crate) async fn decide(&self, module: &str, tiny: &Tiny, spec: &Value) {
        let component = tiny.component();
        self.cluster.put_snapshot(module, &component).await;
        let record = record(module, &component, spec);
        self.cluster.put_record(&record).await;
        self.replica.until_active(&record).await;
    }

    /// Lets the account of a module read everything.
    pub(crate) async fn allow_all(&self, account: &str) {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{account}");
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        self.cluster.merge(&path, &json!({ "rules": rules })).await;
    }

    /// What the audit says of a module.
    pub(crate) fn state(&self, module: &str) -> Option<AuditState> {
        self.states.lock().unwrap().get(module).cloned()
    }

    /// The report about a namespace.
    pub(crate) async fn report(&self, namespace: &str) -> Option<Value> {
        let path = format!("{REPORT}/namespaces/{namespace}/reports/innkeeper-policy-labels");
        self.cluster.api.get(&path).await.unwrap()
    }

    /// All reports about objects in namespaces.
    pub(crate) async fn reports(&self) -> Vec<Value> {
        self.cluster.api.list(&format!("{REPORT}/reports")).await.unwrap()
    }

    /// Waits until the audit of a module is complete with these counts.
    pub(crate) async fn until(&self, module: &str, expected: AuditCounts) {
        self.until_state(module, |state| state.counts == expected && state.completed.is_some())
            .await;
    }

    /// Waits until this holds for what the audit says of a module.
    pub(crate) async fn until_state(&self, module: &str, holds: impl Fn(&AuditState) -> bool) {
        let begun = self.replica.env.instant();
        while !self.state(module).is_some_and(|state| holds(&state)) {
            let passed = self.replica.env.instant().duration_since(begun);
            assert!(passed < LIMIT, "not in time: {module} has {:?}", self.state(module));
            self.pass(STEP).await;
        }
    }

    /// Waits until this holds for the report about a namespace; gives it.
    pub(crate) async fn until_report(
        &self,
        namespace: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let begun = self.replica.env.instant();
        loop {
            let report = self.report(namespace).await;
            if let Some(report) = report.as_ref().filter(|report| holds(report)) {
                return report.clone();
            }
            let passed = self.replica.env.instant().duration_since(begun);
            assert!(passed < LIMIT, "not in time: the report is {report:?}");
            self.pass(STEP).await;
        }
    }

    /// Waits until the report about a namespace is gone.
    pub(crate) async fn until_gone(&self, namespace: &str) {
        let begun = self.replica.env.instant();
        while let Some(report) = self.report(namespace).await {
            let passed = self.replica.env.instant().duration_since(begun);
            assert!(passed < LIMIT, "not gone in time: {report:#}");
            self.pass(STEP).await;
        }
    }

    /// Waits until the audit has made at least so many reviews.
    pub(crate) async fn until_reviews(&self, module: &str, least: u64) {
        let begun = self.replica.env.instant();
        while self.reviews(module) < least {
            let passed = self.replica.env.instant().duration_since(begun);
            assert!(passed < LIMIT, "not in time: {} reviews", self.reviews(module));
            self.pass(Duration::from_millis(10)).await;
        }
    }

    /// How many reviews the audit has made with the policy of a module.
    pub(crate) fn reviews(&self, module: &str) -> u64 {
        let start = format!("innkeeper_policy_audit_reviews_total{{module=\"{module}\",");
        let metrics = self.metrics();
        let lines = metrics.lines().filter(|line| line.starts_with(&start));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// The metrics of the replica.
    pub(crate) fn metrics(&self) -> String {
        self.replica.policies.metrics()
    }

    /// The writes of reports since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.sent_writes().iter().map(Sent::line).collect()
    }

    /// The paths of the same requests.
    pub(crate) fn write_paths(&self) -> Vec<String> {
        self.sent_writes().into_iter().map(|sent| sent.path).collect()
    }

    fn sent_writes(&self) -> Vec<Sent> {
        let mut sent = self.replica.proxy.take();
        sent.retain(|one| one.is_write() && one.path.contains("openreports.io"));
        sent
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.replica.pass(time).await;
    }
}

fn lead(replica: &Replica) -> (States, watch::Sender<bool>, Task<()>) {
    let key = SecretDigestKey::new(b"simulated");
    let cluster =
        Cluster::over(replica.proxy.clone(), replica.env.clone(), Settings::default(), key);
    let states = States::default();
    let published = states.clone();
    let publish = Box::new(move |module: &str, state: Option<AuditState>| {
        let mut states = published.lock().unwrap();
        match state {
            Some(state) => drop(states.insert(module.to_owned(), state)),
            None => drop(states.remove(module)),
        }
    });
    let permits = replica.engine.permits().clone();
    let audit = PolicyAudit::new(cluster.host(), replica.policies.clone(), permits, publish);
    let (stop, stopped) = watch::channel(false);
    let task = replica.env.spawn("audit", audit.audit(stopped));
    (states, stop, task)
}
