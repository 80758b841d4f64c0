//! What an operator gives back when it is gone. Its engine reserves hundreds of GiB of addresses,
//! of which a process has 128 TiB: they show whether anything still refers to the engine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{
    Caches, Change, Cluster, Env, Listener, Namespaces, SecretDigestKey, Settings, View,
};
use innkeeper_contract::Kind;
use innkeeper_lab::{Api, Guests, Lab, Modules, Setup, block_on};
use innkeeper_operator::{Bounds, Execution, ModulesLocation, Operator, ReplicaPolicies};
use innkeeper_sandbox::{Compile, Engine};
use innkeeper_simulator::Simulator;
use innkeeper_tiny_guests::Tiny;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How often a test repeats what has to give its addresses back.
const TIMES: u64 = 3;
/// The limit of all waits. Those for the operator on threads are in real time.
const LIMIT: Duration = Duration::from_mins(1);
/// The path of the ConfigMap that the guest makes for the primary.
const MADE: &str = "/api/v1/namespaces/default/configmaps/made";

/// The addresses are those of the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The addresses that this process has reserved, in pages.
fn reserved() -> u64 {
    let sizes = std::fs::read_to_string("/proc/self/statm").unwrap();
    sizes.split(' ').next().unwrap().parse().unwrap()
}

/// Checks that nothing refers to an engine after a life in which one was made.
fn assert_frees_engine(life: impl Fn()) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The first life pays for what is made once.
    life();
    let before = reserved();
    let guests = Guests::new().unwrap();
    let of_engine = reserved() - before;
    drop(guests);
    for _ in 0..TIMES {
        life();
    }
    let kept = reserved().saturating_sub(before);
    assert!(kept < of_engine / 2, "{kept} pages are reserved; an engine has {of_engine}");
}

/// The kind of the primaries.
fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tinies.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Tiny", "plural": "tinies"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": any, "status": any}}}}]}})
}

fn primary() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Tiny", "metadata": {"name": "one"}})
}

/// The module, whose guest makes a ConfigMap, with its component in a folder.
fn module(folder: &Path) -> Value {
    let kind = |api_version: &str, kind: &str, plural: &str| json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"});
    let manifest = json!({"name": "tiny", "version": "1.0.0",
        "primary": kind("example.com/v1", "Tiny", "tinies"),
        "owned": [{"kind": kind("v1", "ConfigMap", "configmaps")}]});
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}});
    let desired = json!({"objects": [{"object": made}]});
    let guest = Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string());
    let file = folder.join("tiny.wasm");
    std::fs::write(&file, guest.component()).unwrap();
    json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "tiny"}, "spec": {"source": {"file": file}}})
}

/// A lab whose module has reconciled a primary.
async fn lab() -> Lab {
    let folder = tempfile::tempdir().unwrap();
    let mut setup = Setup::new(1);
    setup.modules = Modules::Given(vec![module(folder.path())]);
    setup.objects = vec![definition()];
    let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
    lab.serves(LIMIT).await.unwrap();
    lab.api().apply(&primary(), "default").await.unwrap();
    lab.until("made", LIMIT, async |api| Ok(api.get(MADE).await?.is_some())).await.unwrap();
    lab
}

#[test]
fn lab_that_ended_keeps_no_engine() {
    assert_frees_engine(|| assert!(block_on(async { lab().await.end().await }).unwrap()));
}

#[test]
fn lab_that_is_dropped_while_its_operator_runs_keeps_no_engine() {
    assert_frees_engine(|| block_on(async { drop(lab().await) }).unwrap());
}

#[test]
fn lab_that_is_dropped_keeps_no_engine_while_the_runtime_goes_on() {
    let reserved_meanwhile = Mutex::new(Vec::new());
    assert_frees_engine(|| {
        block_on(async {
            let before = reserved();
            let lab = lab().await;
            let during = reserved();
            let env = lab.running().env().clone();
            drop(lab);
            // The aborted tasks end at their next turn.
            env.sleep(Duration::from_secs(1)).await;
            reserved_meanwhile.lock().unwrap().push((before, during, reserved()));
        })
        .unwrap();
    });
    for (before, during, after) in reserved_meanwhile.into_inner().unwrap() {
        assert!(after.saturating_sub(before) < (during - before) / 2, "{before} {during} {after}");
    }
}

/// Sends the objects that appear in a cache.
struct Appeared(mpsc::UnboundedSender<String>);

impl Listener for Appeared {
    fn changed(&self, change: &Change) {
        if change.before.is_none() {
            let _ = self.0.send(change.key.name().to_string());
        }
    }

    fn state_changed(&self, _change: &StateChange) {}
}

/// A cluster with a primary, and an operator on threads and real time that nobody runs yet.
struct OnThreads {
    operator: Operator,
    /// The names of ConfigMaps that appear.
    appeared: mpsc::UnboundedReceiver<String>,
    _view: View,
    _folder: tempfile::TempDir,
}

impl OnThreads {
    async fn new() -> Self {
        let simulator = Simulator::new(1, Timestamp::now());
        let api = Api::simulated(simulator.clone());
        for object in [definition(), primary()] {
            api.apply(&object, "default").await.unwrap();
        }
        let secrets = SecretDigestKey::new(b"threads");
        let cluster = Cluster::over(simulator, Env::real(), Settings::default(), secrets);

        let (sender, appeared) = mpsc::unbounded_channel();
        let caches = Caches::new(Env::real(), Arc::new(Appeared(sender)));
        let kinds = [Kind::namespaced("v1", "ConfigMap", "configmaps")];
        let view = caches.open(&cluster.host(), "test", &kinds, &Namespaces::All);
        view.settled().await;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("module.json");
        std::fs::write(file, module(folder.path()).to_string()).unwrap();
        let from = ModulesLocation::Directory(folder.path().to_owned());
        let engine = Engine::builder().compile(Compile::InProcess).build().unwrap();
        let bounds = Bounds::default();
        let policies = ReplicaPolicies::new(Env::real(), &engine, Execution::Threads).unwrap();
        let operator = Operator::new(cluster, engine, from, bounds, policies, "test").unwrap();
        Self { operator, appeared, _view: view, _folder: folder }
    }

    /// Runs the operator, and waits until the guest has run.
    async fn run(&mut self) -> (watch::Sender<bool>, JoinHandle<()>) {
        let (stop, stopped) = watch::channel(false);
        let operator = self.operator.clone();
        let running = tokio::spawn(async move { operator.run(stopped).await });
        let appeared = async { while self.appeared.recv().await.unwrap() != "made" {} };
        tokio::time::timeout(LIMIT, appeared).await.unwrap();
        (stop, running)
    }
}

fn on_threads(future: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future);
}

#[test]
fn operator_on_threads_that_is_stopped_keeps_no_engine() {
    assert_frees_engine(|| {
        on_threads(async {
            let mut stage = OnThreads::new().await;
            let (stop, running) = stage.run().await;
            stop.send(true).unwrap();
            tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
        });
    });
}

#[test]
fn operator_on_threads_whose_run_is_dropped_keeps_no_engine() {
    assert_frees_engine(|| {
        on_threads(async {
            let mut stage = OnThreads::new().await;
            let (_stop, running) = stage.run().await;
            running.abort();
        });
    });
}

#[test]
fn operator_whose_stop_sender_is_dropped_ends_and_keeps_no_engine() {
    assert_frees_engine(|| {
        on_threads(async {
            let mut stage = OnThreads::new().await;
            let (stop, running) = stage.run().await;
            drop(stop);
            tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
        });
    });
}
