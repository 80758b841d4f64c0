//! An operator with one guest, on one thread and virtual time, over whatever answers its requests.

use std::path::PathBuf;

use innkeeper_cluster::{Cluster, Env, Task};
use innkeeper_operator::{Bounds, Execution, ModulesFrom, Operator};
use innkeeper_sandbox::{Compile, Engine, Interruption};
use serde_json::Value;
use tokio::sync::watch;

/// Runs `future` on one thread and virtual time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// A component that `cargo xtask guests` has built.
pub(crate) fn component(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../guests/target/components/{name}.wasm"));
    assert!(path.exists(), "{} is not there: run `cargo xtask guests` first", path.display());
    path.canonicalize().unwrap()
}

/// A running operator.
pub(crate) struct Running {
    pub(crate) env: Env,
    pub(crate) operator: Operator,
    stop: watch::Sender<bool>,
    task: Task<()>,
    _folder: tempfile::TempDir,
}

impl Running {
    /// Starts it with one Module, of a folder.
    pub(crate) fn start(cluster: Cluster, module: &Value) -> Self {
        let env = cluster.env().clone();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("module.json"), module.to_string()).unwrap();
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
        let task = env.spawn("operator", {
            let operator = operator.clone();
            async move { operator.run(stopped).await }
        });
        Self { env, operator, stop, task, _folder: folder }
    }

    /// Tells the operator to end, and waits for it.
    pub(crate) async fn end(self) {
        self.stop.send(true).unwrap();
        assert!(self.task.await.is_some(), "the operator ends when it is told to");
    }
}
