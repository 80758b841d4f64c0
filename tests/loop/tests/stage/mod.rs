//! An operator over a scripted API server, on one thread and virtual time.

use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_lab::{Guests, Modules, RunningOperator};
use innkeeper_loop_tests::{Faults, Scripted};
use serde_json::{Value, json};

use crate::running::component;

/// Where the primaries are.
pub(crate) const BENCH: &str = "apis/bench.innkeeper.dev/v1";

/// A primary of the bench guest.
pub(crate) fn bench(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "bench.innkeeper.dev/v1", "kind": "Bench",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"image": "example.com/app:1", "replicas": replicas}})
}

/// A running operator with the bench guest.
pub(crate) struct Stage {
    pub(crate) server: Scripted,
    pub(crate) running: RunningOperator,
}

impl Stage {
    /// Starts it, and waits until the module serves.
    pub(crate) async fn start(seed: u64, faults: Faults) -> Self {
        let server = Scripted::new(
            &[
                (BENCH, "benches", "Bench"),
                ("apis/apps/v1", "deployments", "Deployment"),
                ("api/v1", "services", "Service"),
                (
                    "apis/apiextensions.k8s.io/v1",
                    "customresourcedefinitions",
                    "CustomResourceDefinition",
                ),
            ],
            faults,
        );
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "benches.bench.innkeeper.dev"},
            "spec": {"versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": true}}}]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]}});
        server.put("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", definition);

        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "bench"},
            "spec": {"source": {"file": component("bench-guest")}, "serviceAccountName": "bench"}});
        let env = Env::scripted(seed, "2026-11-21T00:00:00Z".parse().unwrap());
        let secrets = SecretDigestKey::new(b"scripted");
        let cluster = Cluster::over(server.clone(), env.clone(), Settings::default(), secrets);
        let running =
            RunningOperator::start(cluster, &Guests::new().unwrap(), &Modules::Given(vec![module]))
                .unwrap();
        env.sleep(Duration::from_secs(5)).await;
        Self { server, running }
    }

    /// Tells the operator to end, and waits for it.
    pub(crate) async fn end(self) -> Scripted {
        assert!(self.running.end().await, "the operator ends on request");
        self.server
    }
}
