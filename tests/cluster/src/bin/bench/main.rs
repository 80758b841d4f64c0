//! The figures of docs/benchmarks.md on a real control plane: `cargo xtask bench`.
//!
//! Requests are counted at the server, from its audit log, by the host's user: without Events
//! and access reviews. CPU and memory are those of the host's process, from /proc.

mod neighbours;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use innkeeper_cluster_tests::stage::{HOST, SOON};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Options, Stage, eventually};
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

const BENCH: Kind = Kind::new("bench.innkeeper.dev/v1", "Bench");
const LABEL: &str = "bench.example.com/version";

/// Measures the host on a control plane of its own.
#[derive(Parser)]
struct Arguments {
    /// Custom resources.
    #[arg(long, default_value_t = 1000)]
    resources: usize,
    /// Changes, and drifts, whose latency is measured one by one.
    #[arg(long, default_value_t = 200)]
    samples: usize,
    /// Swaps of the guest.
    #[arg(long, default_value_t = 20)]
    swaps: usize,
    /// Only what noisy modules cost their neighbour.
    #[arg(long)]
    neighbours: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut bench = Bench::new(arguments).await?;
    if bench.arguments.neighbours {
        bench.create().await?;
        return neighbours::measure(&bench).await;
    }
    bench.create().await?;
    bench.change().await?;
    bench.latency().await?;
    bench.drift().await?;
    bench.restart().await?;
    bench.swap().await
}

struct Bench {
    arguments: Arguments,
    stage: Stage,
    host: Option<Host>,
    namespace: String,
    /// The replicas of the next change: never the same twice.
    next: AtomicUsize,
}

/// CPU seconds and resident MiB of a process.
#[derive(Clone, Copy)]
struct Usage {
    cpu_s: f64,
    rss_mib: f64,
}

fn usage(pid: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.get(index).context("a field of /proc/PID/stat")?.parse::<f64>()?)
    };
    // utime and stime are fields 14 and 15; the first two stand before the last parenthesis.
    let cpu_s = (ticks(11)? + ticks(12)?) / 100.0;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("VmRSS")?
        .trim()
        .parse()?;
    Ok(Usage { cpu_s, rss_mib: kib / 1024.0 })
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small counts"
    )]
    let index = ((times.len() as f64 - 1.0) * part).round() as usize;
    times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

#[allow(clippy::print_stdout, reason = "this program prints figures")]
fn say(line: &str) {
    println!("{line}");
}

impl Bench {
    async fn new(arguments: Arguments) -> Result<Self> {
        let stage =
            Stage::with(Options { controller_manager: false, ..Options::default() }).await?;
        let namespace = stage.admin.namespace("bench").await?;
        let spec = json!({"allowedCRDGroups": ["bench.innkeeper.dev"], "namespaces": [namespace]});
        stage.module("bench", "bench-guest", &spec).await?;
        let host = stage.host().await?;
        stage.ready("bench").await?;
        stage.quiet(Duration::from_secs(2)).await?;
        let usage = usage(host.pid())?;
        say(&format!("start: {:.2} CPU s; idle {:.1} MiB", usage.cpu_s, usage.rss_mib));
        Ok(Self { arguments, stage, host: Some(host), namespace, next: AtomicUsize::new(1000) })
    }

    fn host(&self) -> Result<&Host> {
        self.host.as_ref().context("the host is stopped")
    }

    fn resource(&self, index: usize, replicas: usize) -> String {
        json!({"apiVersion": BENCH.api_version, "kind": BENCH.kind,
            "metadata": {"name": format!("b{index:05}"), "namespace": self.namespace},
            "spec": {"image": "example.com/app:1", "replicas": replicas}})
        .to_string()
    }

    /// Applies all resources, eight at a time.
    async fn apply_all(&self, replicas: usize) -> Result<()> {
        stream::iter(0..self.arguments.resources)
            .map(|index| async move { self.stage.admin.apply(&self.resource(index, replicas)).await })
            .buffer_unordered(8)
            .try_collect::<Vec<_>>()
            .await
            .map(drop)
    }

    async fn measured(&self, what: &str, work: impl Future<Output = Result<()>>) -> Result<()> {
        let audit = self.stage.plane.audit()?;
        let mark = audit.mark()?;
        let pid = self.host()?.pid();
        let before = usage(pid)?;
        let started = Instant::now();
        work.await?;
        self.quiet().await?;
        let after = usage(pid)?;
        let (count, conflicts, by) = requests(&self.stage, mark)?;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let each = count as f64 / self.arguments.resources as f64;
        say(&format!(
            "{what}: {each:.3} requests a resource, {conflicts} answered 409; {:.2} CPU s; {:.1} MiB; {:.1} s in all",
            after.cpu_s - before.cpu_s,
            after.rss_mib,
            started.elapsed().as_secs_f64(),
        ));
        for (request, count) in by {
            say(&format!("    {count:6} {request}"));
        }
        Ok(())
    }

    async fn create(&self) -> Result<()> {
        self.measured("create", async {
            self.apply_all(1).await?;
            self.synced().await
        })
        .await
    }

    async fn change(&self) -> Result<()> {
        self.measured("change each once", async {
            self.apply_all(2).await?;
            self.synced().await
        })
        .await
    }

    async fn synced(&self) -> Result<()> {
        self.stage.all_synced(BENCH, &self.namespace, self.arguments.resources).await
    }

    async fn quiet(&self) -> Result<()> {
        self.stage.quiet(Duration::from_secs(2)).await
    }

    /// Every Deployment as it changes: name, replicas, and whether it has the new version's label.
    fn deployments(&self) -> tokio::sync::mpsc::UnboundedReceiver<(String, Value, bool, Instant)> {
        let gvk = kube::api::GroupVersionKind::gvk("apps", "v1", "Deployment");
        let resource = kube::api::ApiResource::from_gvk(&gvk);
        let client = self.stage.admin.client().clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut objects = watcher(api, watcher::Config::default()).applied_objects().boxed();
            while let Ok(Some(object)) = objects.try_next().await {
                let name = object.metadata.name.clone().unwrap_or_default();
                let labels = object.metadata.labels.clone().unwrap_or_default();
                let replicas = object.data["spec"]["replicas"].clone();
                if sender
                    .send((name, replicas, labels.contains_key(LABEL), Instant::now()))
                    .is_err()
                {
                    return;
                }
            }
        });
        receiver
    }

    async fn latency(&self) -> Result<()> {
        let mut times = self.change_one_by_one().await?;
        say(&format!(
            "change to Deployment: p50 {:.1} ms, p99 {:.1} ms ({} changes, the client's write included)",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.99),
            times.len()
        ));
        self.quiet().await
    }

    /// Changes one resource after the other; gives how long each took to reach its Deployment.
    async fn change_one_by_one(&self) -> Result<Vec<Duration>> {
        let mut seen = self.deployments();
        let mut times = Vec::new();
        for sample in 0..self.arguments.samples {
            let index = sample % self.arguments.resources;
            let replicas = self.next.fetch_add(1, Ordering::Relaxed);
            let patch = json!({"spec": {"replicas": replicas}});
            let name = format!("b{index:05}");
            let started = Instant::now();
            self.stage.admin.merge(BENCH, &self.namespace, &name, "bench", &patch).await?;
            times.push(wait(&mut seen, &name, |value, _| *value == replicas).await? - started);
        }
        Ok(times)
    }

    async fn drift(&self) -> Result<()> {
        let mut seen = self.deployments();
        let audit = self.stage.plane.audit()?;
        let mark = audit.mark()?;
        let mut times = Vec::new();
        for sample in 0..self.arguments.samples {
            let name = format!("b{:05}", sample % self.arguments.resources);
            let at = (Kind::DEPLOYMENT, self.namespace.as_str(), name.as_str());
            let wanted =
                self.stage.admin.must_get(at.0, at.1, at.2).await?["spec"]["replicas"].clone();
            let patch = json!({"spec": {"replicas": 7}});
            let started = Instant::now();
            self.stage.admin.merge(at.0, at.1, at.2, "somebody", &patch).await?;
            wait(&mut seen, &name, |value, _| *value == 7).await?;
            times.push(wait(&mut seen, &name, |value, _| *value == wanted).await? - started);
        }
        self.quiet().await?;
        let (count, _, _) = requests(&self.stage, mark)?;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let each = count as f64 / times.len() as f64;
        say(&format!(
            "drift repair: p50 {:.1} ms, p99 {:.1} ms; {each:.2} requests each",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.99)
        ));
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        if let Some(host) = self.host.take() {
            host.stop(Duration::from_secs(10)).await?;
        }
        let mark = self.stage.plane.audit()?.mark()?;
        let started = Instant::now();
        let host = self.stage.host().await?;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let wanted = self.arguments.resources as f64;
        eventually("all have been worked on", 10 * SOON, async || {
            let done = host.metric("controller_runtime_reconcile_total", &[]).await?.unwrap_or(0.0);
            Ok(if done >= wanted { Ok(()) } else { Err(format!("{done} of {wanted}")) })
        })
        .await?;
        let took = started.elapsed().as_secs_f64();
        self.quiet().await?;
        let usage = usage(host.pid())?;
        let writes: Vec<String> = self
            .stage
            .plane
            .audit()?
            .since(mark, &AuditFilter::new().writes().user(HOST))?
            .into_iter()
            .filter(|event| !event.resource.starts_with("selfsubject"))
            .map(|event| format!("{} {}", event.verb, event.uri))
            .collect();
        say(&format!(
            "restart: {} needless writes; {:.2} CPU s; {:.1} MiB; all worked on after {took:.1} s",
            writes.len(),
            usage.cpu_s,
            usage.rss_mib
        ));
        for write in writes.iter().take(5) {
            say(&format!("    {write}"));
        }
        self.host = Some(host);
        Ok(())
    }

    /// From the update of the ConfigMap to the first write by the new version.
    async fn swap(&self) -> Result<()> {
        let mut seen = self.deployments();
        let mut times = Vec::new();
        for swap in 0..self.arguments.swaps {
            let labelled = swap % 2 == 0;
            let component = if labelled { "bench-labelled" } else { "bench-guest" };
            while seen.try_recv().is_ok() {}
            let started = Instant::now();
            self.stage.push("bench", component).await?;
            let first = tokio::time::timeout(SOON, async {
                while let Some((_, _, has, at)) = seen.recv().await {
                    if has == labelled {
                        return Some(at);
                    }
                }
                None
            });
            times.push(first.await?.context("the watch ended")? - started);
            self.quiet().await?;
        }
        say(&format!(
            "swap, from the ConfigMap to the first write by the new version: p50 {:.0} ms, p99 {:.0} ms ({} swaps, {} resources)",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.99),
            times.len(),
            self.arguments.resources
        ));
        Ok(())
    }
}

async fn wait(
    seen: &mut tokio::sync::mpsc::UnboundedReceiver<(String, Value, bool, Instant)>,
    name: &str,
    is: impl Fn(&Value, bool) -> bool,
) -> Result<Instant> {
    let found = tokio::time::timeout(SOON, async {
        while let Some((found, replicas, labelled, at)) = seen.recv().await {
            if found == name && is(&replicas, labelled) {
                return Some(at);
            }
        }
        None
    });
    found
        .await
        .with_context(|| format!("Deployment {name} does not follow"))?
        .context("the watch ended")
}

/// The host's requests since a mark: how many, how many were answered 409, and by verb and
/// resource. Without Events, access reviews, and watches, which are opened again every minute.
fn requests(stage: &Stage, mark: u64) -> Result<(usize, usize, BTreeMap<String, usize>)> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().user(HOST))?;
    let mut by = BTreeMap::new();
    let (mut count, mut conflicts) = (0, 0);
    for event in events {
        let counted = event.verb != "watch"
            && event.resource != "events"
            && !event.resource.starts_with("selfsubject");
        if counted {
            count += 1;
            conflicts += usize::from(event.code == 409);
            let of = if event.subresource.is_empty() {
                event.resource.clone()
            } else {
                format!("{}/{}", event.resource, event.subresource)
            };
            *by.entry(format!("{} {of} {}", event.verb, event.code)).or_default() += 1;
        }
    }
    Ok((count, conflicts, by))
}
