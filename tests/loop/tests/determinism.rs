//! The whole loop against a scripted API server: the same seed gives the same requests, twice.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::PathBuf;
use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretKey, Settings};
use innkeeper_loop_tests::{Faults, Scripted};
use innkeeper_operator::{Bounds, Execution, ModulesFrom, Operator};
use innkeeper_sandbox::{Compile, Engine, Interruption};
use serde_json::{Value, json};
use tokio::sync::watch;

const BENCH: &str = "apis/bench.innkeeper.dev/v1";

fn component() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/target/components/bench-guest.wasm");
    assert!(path.exists(), "{} is not there: run `cargo xtask guests` first", path.display());
    path.canonicalize().unwrap()
}

fn bench(name: &str, replicas: u32) -> Value {
    json!({"apiVersion": "bench.innkeeper.dev/v1", "kind": "Bench",
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"image": "example.com/app:1", "replicas": replicas}})
}

/// Runs the loop from an empty server through creations, changes, drift, faults and deletions;
/// gives every request and what was made.
fn run(seed: u64, faults: Faults) -> (Vec<String>, Vec<Value>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Scripted::new(
            &[
                (BENCH, "benches", "Bench"),
                ("apis/apps/v1", "deployments", "Deployment"),
                ("api/v1", "services", "Service"),
                ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
            ],
            faults,
        );
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "benches.bench.innkeeper.dev"},
            "spec": {"versions": [{"name": "v1", "served": true,
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
            Operator::new(cluster, engine, from, Bounds::default(), Execution::Inline, "test").unwrap();
        let (stop, stopped) = watch::channel(false);
        let running = env.spawn("operator", {
            let operator = operator.clone();
            async move { operator.run(stopped).await }
        });

        env.sleep(Duration::from_secs(5)).await;
        for index in 0..20 {
            server.put(BENCH, "benches", bench(&format!("b{index:02}"), 1));
        }
        env.sleep(Duration::from_mins(1)).await;
        for index in (0..20).step_by(3) {
            server.put(BENCH, "benches", bench(&format!("b{index:02}"), 5));
        }
        // Drift: somebody takes Services away.
        for index in (0..20).step_by(4) {
            server.delete("api/v1", "services", "n", &format!("b{index:02}"));
        }
        env.sleep(Duration::from_mins(10)).await;
        assert!(operator.is_quiet(), "after ten minutes there is nothing left to do");
        let before = server.log().iter().filter(|line| is_write(line)).count();
        env.sleep(Duration::from_mins(10)).await;
        let after = server.log().iter().filter(|line| is_write(line)).count();
        assert_eq!(before, after, "a converged loop writes nothing");

        stop.send(true).unwrap();
        assert!(running.await.is_some(), "the operator ends when it is told to");
        let mut made = server.list("apis/apps/v1", "deployments");
        made.extend(server.list("api/v1", "services"));
        (server.log(), made)
    })
}

fn is_write(line: &str) -> bool {
    ["PATCH", "POST", "DELETE", "PUT"].iter().any(|method| line.starts_with(method))
        && !line.contains("selfsubjectaccessreviews")
}

fn assert_same(first: &[String], second: &[String]) {
    for (index, (a, b)) in first.iter().zip(second).enumerate() {
        assert_eq!(a, b, "request {index} differs");
    }
    assert_eq!(first.len(), second.len());
}

#[test]
fn the_same_seed_gives_the_same_requests_twice() {
    let seed = 42;
    println!("seed {seed}");
    let (first, made) = run(seed, Faults::default());
    let (second, _) = run(seed, Faults::default());
    assert_same(&first, &second);
    assert_eq!(made.len(), 40, "a Deployment and a Service each");
    let deployment = made.iter().find(|one| one["metadata"]["name"] == "b03").unwrap();
    assert_eq!(deployment["spec"]["replicas"], 5);
    let impersonated = first.iter().filter(|line| is_write(line));
    for line in impersonated {
        assert!(line.contains("system:serviceaccount:innkeeper-modules:bench"), "{line}");
    }
}

#[test]
fn three_requests_a_resource_and_two_a_change() {
    let (log, _) = run(7, Faults::default());
    let writes = log.iter().filter(|line| is_write(line)).count();
    // 20 creations of three writes, 7 changes of two, and 5 Services made again, of which two
    // belong to resources that changed.
    assert_eq!(
        writes,
        20 * 3 + 7 * 2 + 5,
        "{:#?}",
        log.iter().filter(|line| is_write(line)).collect::<Vec<_>>()
    );
}

#[test]
fn with_faults_too_and_nothing_is_lost() {
    let faults = Faults { unavailable_every: 7, lost_every: 11 };
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let (first, made) = run(seed, faults);
        let (second, _) = run(seed, faults);
        assert_same(&first, &second);
        assert_eq!(made.len(), 40);
    }
}
