use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_lab::{Api, Content};
use innkeeper_simulator::{Controllers, Simulator};
use jiff::Timestamp;
use serde_json::json;

use super::*;

const ALL: Filter<'static> = Filter { module: None, namespace: None };

/// A simulated API server with a Module whose policy has an audit.
struct Server {
    simulator: Simulator,
    api: Api,
}

impl Server {
    async fn start() -> Self {
        let controllers = Controllers { garbage_collector: false, ..Controllers::default() };
        let simulator = Simulator::with(7, Timestamp::UNIX_EPOCH, controllers);
        let server = Self { api: Api::simulated(simulator.clone()), simulator };
        server.apply(&innkeeper_modules::crd()).await;
        server
    }

    async fn apply(&self, object: &Value) {
        self.api.apply(object, "default").await.unwrap();
    }

    /// A Module whose status shows this audit.
    async fn put_module(&self, name: &str, audit: &Value) {
        self.apply(&json!({"apiVersion": module::API_VERSION, "kind": "Module",
            "metadata": {"name": name},
            "spec": {"source": {"configMap": {"name": name}}, "serviceAccountName": name}}))
            .await;
        let status =
            json!({"status": {"policy": {"kind": "Validate", "mode": "Warn", "audit": audit}}});
        let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}/status");
        self.api.send("PATCH", &path, Content::MergePatch, &status).await.unwrap();
    }

    async fn define_reports(&self) {
        for kind in [&*REPORT, &*CLUSTER_REPORT] {
            let scope = if kind.is_namespaced() { "Namespaced" } else { "Cluster" };
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            self.apply(&json!({"apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{}.openreports.io", kind.plural)},
                "spec": {"group": "openreports.io", "scope": scope,
                    "names": {"kind": kind.kind, "plural": kind.plural,
                        "singular": kind.kind.to_lowercase()},
                    "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": schema}}]}}))
                .await;
        }
    }

    /// A report of the host with these results, and counts of them and of three that pass.
    async fn put_report(&self, module: &str, namespace: &str, results: &[(&str, &str, &str)]) {
        let count = |result: &str| results.iter().filter(|(one, ..)| *one == result).count();
        let listed: Vec<Value> = results
            .iter()
            .map(|(result, name, message)| {
                json!({"policy": module, "result": result, "message": message,
                    "timestamp": {"seconds": 1, "nanos": 0}, "properties": {"reason": "Forbidden"},
                    "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name,
                        "namespace": namespace}]})
            })
            .collect();
        let kind = if namespace.is_empty() { "ClusterReport" } else { "Report" };
        let mut metadata = json!({"name": format!("innkeeper-policy-{module}"),
            "labels": {POLICY_LABEL: module}});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
            self.apply(&json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace}}))
                .await;
        }
        self.apply(&json!({"apiVersion": "openreports.io/v1alpha1", "kind": kind,
            "metadata": metadata, "source": "innkeeper", "results": listed,
            "summary": {"pass": 3, "fail": count("fail"), "warn": count("warn"),
                "error": count("error"), "skip": 0}}))
            .await;
    }

    async fn read(&self, filter: Filter<'_>) -> Findings {
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let (settings, key) = (Settings::default(), SecretDigestKey::new(&[]));
        let client = Cluster::over(self.simulator.clone(), env, settings, key).host();
        read(&client, filter).await.unwrap()
    }
}

fn complete(denied: u64, failed: u64) -> Value {
    json!({"passed": 3, "denied": denied, "warned": 0, "failed": failed,
        "completed": "1970-01-01T00:00:00Z"})
}

#[tokio::test(start_paused = true)]
async fn reports_of_the_host_are_shown_in_order_and_those_of_other_tools_are_not() {
    let server = Server::start().await;
    server.define_reports().await;
    server.put_module("labels", &complete(2, 0)).await;
    server.put_report("labels", "web", &[("fail", "b", "no label"), ("warn", "a", "odd")]).await;
    server.put_report("labels", "", &[("fail", "c", "\u{1b}[2J")]).await;
    server
        .apply(&json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {"name": "foreign", "namespace": "web"}, "source": "other",
            "results": [{"policy": "x", "result": "fail", "resources": [{"name": "z"}]}]}))
        .await;
    let findings = server.read(ALL).await;
    assert_eq!(
        findings.page().text(),
        "NAMESPACE  KIND       NAME  POLICY  RESULT  MESSAGE\n\
         <none>     ConfigMap  c     labels  denied  \\u{1b}[2J\n\
         web        ConfigMap  a     labels  warned  odd\n\
         web        ConfigMap  b     labels  denied  no label\n"
    );
    assert_eq!(findings.status(), 1);
    assert_eq!(findings.summary(), "objects: 6 passed, 2 denied, 1 warned, 0 failed");
    assert_eq!(findings.notes(), Vec::<String>::new());

    let of_namespace = server.read(Filter { namespace: Some("web"), ..ALL }).await;
    assert_eq!(of_namespace.json()["summary"]["denied"], 1);
    let of_other = server.read(Filter { module: Some("other"), ..ALL }).await;
    assert_eq!(of_other.status(), 3, "it has no audit");
    assert!(of_other.notes()[0].starts_with("no Module other has an audit"));
}

#[tokio::test(start_paused = true)]
async fn modules_count_where_no_reports_are_served() {
    let server = Server::start().await;
    server.put_module("labels", &complete(2, 0)).await;
    let findings = server.read(ALL).await;
    assert_eq!((findings.status(), findings.page().text()), (1, ""));
    assert_eq!(findings.summary(), "objects: 3 passed, 2 denied, 0 warned, 0 failed");
    assert!(findings.notes()[0].contains("helm install openreports"), "{:?}", findings.notes());
    assert!(findings.notes()[1].starts_with("2 further objects"), "{:?}", findings.notes());
    let of_namespace = server.read(Filter { namespace: Some("web"), ..ALL }).await;
    assert_eq!(of_namespace.status(), 3);
}

#[tokio::test(start_paused = true)]
async fn failed_reviews_end_with_three_and_an_audit_that_is_not_complete_with_a_note() {
    let server = Server::start().await;
    server.define_reports().await;
    let problem = json!({"passed": 0, "denied": 0, "warned": 0, "failed": 0,
        "problem": "secrets: no right"});
    server.put_module("labels", &problem).await;
    let findings = server.read(ALL).await;
    assert_eq!(findings.status(), 0);
    assert_eq!(
        findings.notes(),
        ["the audit of the Module labels is not complete yet", "Module labels: secrets: no right"]
    );
    server.put_module("labels", &complete(1, 1)).await;
    server.put_report("labels", "web", &[("error", "a", "trap"), ("fail", "b", "no")]).await;
    assert_eq!(server.read(ALL).await.status(), 3, "a failed review is worse than a denial");
}

#[test]
fn forged_report_of_a_tenant_says_nothing_of_other_namespaces_and_ends_no_command() {
    innkeeper_lab::block_on(async {
        let server = Server::start().await;
        server.define_reports().await;
        server.put_module("labels", &json!({"passed": 1, "denied": 0})).await;
        // Given a report in the namespace of a tenant about another one, with counts without end.
        server.put_report("labels", "tenant", &[("fail", "own", "no")]).await;
        let result = |namespace: &str| {
            json!({"policy": "labels", "result": "fail", "message": "no", "resources": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "namespace": namespace}]})
        };
        let forged = json!({"results": [result("kube-system"), result("")],
            "summary": {"fail": i64::MAX, "warn": i64::MAX, "error": i64::MAX}});
        let path =
            "/apis/openreports.io/v1alpha1/namespaces/tenant/reports/innkeeper-policy-labels";
        server.api.send("PATCH", path, Content::MergePatch, &forged).await.unwrap();
        // Then its rows are not shown.
        let findings = server.read(ALL).await;
        assert_eq!(findings.json()["results"], json!([]));
        assert!(findings.notes().iter().any(|note| note.contains("counted only")));
    })
    .unwrap();
}
