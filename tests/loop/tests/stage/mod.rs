//! An operator over a scripted API server, on one thread and virtual time.

use std::path::PathBuf;
use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretKey, Settings, Task};
use innkeeper_loop_tests::{Faults, Scripted};
use innkeeper_operator::{Bounds, Execution, ModulesFrom, Operator};
use innkeeper_sandbox::{Compile, Engine, Interruption};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Where the primaries are.
pub(crate) const BENCH: &str = "apis/bench.innkeeper.dev/v1";

/// A primary of the bench guest.
pub(crate) fn bench(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "bench.innkeeper.dev/v1", "kind": "Bench",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"image": "example.com/app:1", "replicas": replicas}})
}

/// Runs `future` on one thread and virtual time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// A running operator with the bench guest.
pub(crate) struct Stage {
    pub(crate) server: Scripted,
    pub(crate) env: Env,
    pub(crate) operator: Operator,
    stop: watch::Sender<bool>,
    running: Task<()>,
    _folder: tempfile::TempDir,
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

        let folder = tempfile::tempdir().unwrap();
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "bench"},
            "spec": {"source": {"file": component()}, "serviceAccountName": "bench"}});
        std::fs::write(folder.path().join("bench.json"), module.to_string()).unwrap();

        let env = Env::scripted(seed, "2026-11-21T00:00:00Z".parse().unwrap());
        let cluster = Cluster::over(
            server.clone(),
            env.clone(),
            Settings::default(),
            SecretKey::new(b"scripted"),
        );
        let engine = Engine::builder()
            .interruption(Interruption::Fuel)
            .compile(Compile::InProcess)
            .permits(2)
            .build()
            .unwrap();
        let from = ModulesFrom::Folder(folder.path().to_owned());
        let operator =
            Operator::new(cluster, engine, from, Bounds::default(), Execution::Inline, "test")
                .unwrap();
        let (stop, stopped) = watch::channel(false);
        let running = env.spawn("operator", {
            let operator = operator.clone();
            async move { operator.run(stopped).await }
        });

        env.sleep(Duration::from_secs(5)).await;
        Self { server, env, operator, stop, running, _folder: folder }
    }

    /// Tells the operator to end, and waits for it.
    pub(crate) async fn end(self) -> Scripted {
        self.stop.send(true).unwrap();
        assert!(self.running.await.is_some(), "the operator ends when it is told to");
        self.server
    }
}

fn component() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/target/components/bench-guest.wasm");
    assert!(path.exists(), "{} is not there: run `cargo xtask guests` first", path.display());
    path.canonicalize().unwrap()
}
