//! What noisy modules cost a calm one: how long its changes take while they run, as
//! ratios in one run.
//!
//! A module is noisy because its primaries change all the time. These changes alone load the API
//! server, which shares the machine: so each is measured without a module first, and what the
//! module costs is the ratio to that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Result;
use innkeeper_cluster_tests::manifests;
use innkeeper_cluster_tests::stage::MANY;
use innkeeper_cluster_tests::{Kind, eventually};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::figures::{quantile, say};

const NOISE: Kind = Kind::new("noise.innkeeper.dev/v1", "Noise");

const MANIFEST: &str = r#"{"name":"noise","primary":{"apiVersion":"noise.innkeeper.dev/v1","kind":"Noise","plural":"noises"}}"#;

/// Primaries of each noisy module.
const PRIMARIES: usize = 100;

/// What a module may write at once: twenty seconds' worth of 200 a second.
const WRITES_AT_ONCE: f64 = 4000.0;

/// How many of the busy module's resources are changed at once, without a pause.
const CHANGED_AT_ONCE: usize = 4;

/// Measures the calm module alone, next to each noisy one, and alone again.
pub(crate) async fn measure(bench: &Bench) -> Result<()> {
    let admin = &bench.stage.admin;
    let crds = admin.apply(&definition().to_string()).await?;
    for crd in &crds {
        admin.until_established(crd).await?;
    }
    let alone = latency(bench, "alone", &[]).await?;

    let endless =
        Tiny::default().manifest(MANIFEST).on_reconcile("(loop $for_ever (br $for_ever))");
    next_to(bench, "a module whose runs do not end", "endless", &endless, alone).await?;
    let trapping = Tiny::default().manifest(MANIFEST).on_reconcile("unreachable");
    next_to(bench, "a module whose runs trap", "trapping", &trapping, alone).await?;
    next_to_a_busy_one(bench, alone).await?;
    latency(bench, "alone again", &[("alone", alone)]).await?;
    Ok(())
}

/// Next to a module of a tiny guest.
async fn next_to(
    bench: &Bench,
    what: &str,
    name: &str,
    guest: &Tiny,
    alone: (f64, f64),
) -> Result<()> {
    let (stage, admin) = (&bench.stage, &bench.stage.admin);
    let namespace = admin.namespace(name).await?;
    admin.apply(&rights(name)).await?;
    for index in 0..PRIMARIES {
        let primary = json!({"apiVersion": NOISE.api_version, "kind": NOISE.kind,
            "metadata": {"name": format!("n{index:03}"), "namespace": namespace}});
        admin.apply(&primary.to_string()).await?;
    }
    // Each change of a primary runs it at once, whatever its backoff is.
    let changes = Changes::begin(bench, NOISE, &namespace, PRIMARIES, "n", 3);
    let without =
        latency(bench, "next to changes that nobody cares for", &[("alone", alone)]).await?;
    let spec = json!({ "namespaces": [namespace] });
    stage.module_of_bytes(name, &guest.component(), &spec).await?;
    stage.ready(name).await?;
    let compared = [("alone", alone), ("without the module", without)];
    latency(bench, &format!("next to {what}"), &compared).await?;
    changes.end(what).await?;
    admin.delete(Kind::MODULE, "", name).await?;
    admin.until_gone(MANY, (Kind::MODULE, "", name)).await
}

/// Next to a module of the same guest whose resources change without a pause.
async fn next_to_a_busy_one(bench: &Bench, alone: (f64, f64)) -> Result<()> {
    let (stage, admin) = (&bench.stage, &bench.stage.admin);
    let namespace = admin.namespace("busy").await?;
    for index in 0..PRIMARIES {
        let manifest = manifests::bench(&namespace, &format!("b{index:05}"), 1);
        admin.apply(&manifest).await?;
    }
    let what = "a module whose resources change all the time";
    let changes = Changes::begin(bench, Kind::BENCH, &namespace, PRIMARIES, "b", 5);
    let without =
        latency(bench, "next to changes that nobody cares for", &[("alone", alone)]).await?;
    stage.module("busy", "bench-guest", &json!({ "namespaces": [namespace] })).await?;
    stage.ready("busy").await?;
    let compared = [("alone", alone), ("without the module", without)];
    latency(bench, &format!("next to {what}"), &compared).await?;
    // From then on it may write so much a second as its Module says.
    eventually("it has written what it may at once", MANY, async || {
        let host = bench.host()?;
        let mut written = 0.0;
        for verb in ["create", "apply", "status"] {
            let labels = ["module=\"busy\"", &format!("verb=\"{verb}\"")];
            written += host.metric("innkeeper_writes_total", &labels).await?.unwrap_or_default();
        }
        Ok(if written > WRITES_AT_ONCE { Ok(()) } else { Err(format!("{written}")) })
    })
    .await?;
    latency(bench, &format!("next to {what}, when its writes are bounded"), &compared).await?;
    changes.end(what).await
}

/// Says how long changes take: p50 and p99 in milliseconds, and how many times as long as alone.
async fn latency(bench: &Bench, what: &str, compared: &[(&str, (f64, f64))]) -> Result<(f64, f64)> {
    let mut times = bench.change_one_by_one().await?;
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    let ratios = compared.iter().map(|(what, (p50_then, p99_then))| {
        format!("; {:.2} and {:.2} times as long as {what}", p50 / p50_then, p99 / p99_then)
    });
    let ratios: String = ratios.collect();
    say(&format!("change to Deployment {what}: p50 {p50:.1} ms, p99 {p99:.1} ms{ratios}"));
    Ok((p50, p99))
}

/// Primaries that are changed all the time.
struct Changes {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Result<()>>>,
}

impl Changes {
    fn begin(
        bench: &Bench,
        kind: Kind,
        namespace: &str,
        primaries: usize,
        prefix: &'static str,
        digits: usize,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicUsize::new(0));
        let tasks = (0..CHANGED_AT_ONCE).map(|_| {
            let (stop, count) = (stop.clone(), count.clone());
            let (admin, namespace) = (bench.stage.admin.clone(), namespace.to_owned());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let change = count.fetch_add(1, Ordering::Relaxed);
                    let name = format!("{prefix}{:0digits$}", change % primaries);
                    let patch = json!({"spec": {"replicas": change}});
                    admin.merge(kind, &namespace, &name, "noise", &patch).await?;
                }
                Ok(())
            })
        });
        let tasks = tasks.collect();
        Self { stop, count, tasks }
    }

    async fn end(self, what: &str) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await??;
        }
        say(&format!("    {} changes of {what}", self.count.load(Ordering::Relaxed)));
        Ok(())
    }
}

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "noises.noise.innkeeper.dev"},
        "spec": {"group": "noise.innkeeper.dev", "scope": "Namespaced",
            "names": {"kind": "Noise", "plural": "noises"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

/// What the account of a noisy module may.
fn rights(module: &str) -> String {
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": module},
    "rules": [
        {"apiGroups": ["noise.innkeeper.dev"], "resources": ["noises"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["noise.innkeeper.dev"], "resources": ["noises/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": module},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": module},
        "subjects": [{"kind": "ServiceAccount", "name": module, "namespace": "innkeeper-modules"}]});
    format!("{role}\n---\n{binding}\n")
}
