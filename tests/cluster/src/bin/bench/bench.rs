//! The host under measurement, its resources, and what is done with them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use innkeeper_cluster_tests::stage::{HOST, SOON};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Options, Stage, eventually};
use serde_json::json;

use crate::figures::{quantile, requests, say, usage};
use crate::workload::{Size, Workload};

/// Measures the host on a control plane of its own.
#[derive(Parser)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) size: Size,
    /// Swaps of the guest.
    #[arg(long, default_value_t = 20)]
    pub(crate) swaps: usize,
    /// Only what noisy modules cost their neighbour.
    #[arg(long)]
    pub(crate) neighbours: bool,
    /// Only what each way to write costs the API server.
    #[arg(long)]
    pub(crate) writes: bool,
    /// Only the comparison with the controllers of others, whose programs are in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) peers: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rounds: crate::peers::PeerArguments,
}

pub(crate) struct Bench {
    pub(crate) arguments: Arguments,
    pub(crate) stage: Stage,
    pub(crate) host: Option<Host>,
    pub(crate) namespace: String,
    workload: Workload,
}

impl Bench {
    pub(crate) async fn new(arguments: Arguments) -> Result<Self> {
        let stage =
            Stage::with(Options { controller_manager: false, ..Options::default() }).await?;
        let namespace = stage.admin.namespace("bench").await?;
        let spec = json!({"allowedCRDGroups": ["bench.innkeeper.dev"], "namespaces": [namespace]});
        stage.module("bench", "bench-guest", &spec).await?;
        let host = stage.host_of_image().await?;
        stage.ready("bench").await?;
        stage.quiet(Duration::from_secs(2)).await?;
        let usage = usage(host.pid())?;
        say(&format!("start: {:.2} CPU s; idle {:.1} MiB", usage.cpu_s, usage.rss_mib));
        let workload = Workload::new(stage.admin.clone(), &namespace, arguments.size);
        Ok(Self { arguments, stage, host: Some(host), namespace, workload })
    }

    pub(crate) fn host(&self) -> Result<&Host> {
        self.host.as_ref().context("the host is stopped")
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
        let requests = requests(&self.stage, HOST, mark)?;
        let conflicts = requests.conflicts;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let each = requests.count as f64 / self.arguments.size.resources as f64;
        say(&format!(
            "{what}: {each:.3} requests a resource, {conflicts} answered 409; {:.2} CPU s; {:.1} MiB; {:.1} s in all",
            after.cpu_s - before.cpu_s,
            after.rss_mib,
            started.elapsed().as_secs_f64(),
        ));
        for (request, count) in requests.by_verb {
            say(&format!("    {count:6} {request}"));
        }
        Ok(())
    }

    pub(crate) async fn create(&self) -> Result<()> {
        self.measured("create", async {
            self.workload.apply_all(1).await?;
            self.synced().await
        })
        .await
    }

    pub(crate) async fn change(&self) -> Result<()> {
        self.measured("change each once", async {
            self.workload.apply_all(2).await?;
            self.synced().await
        })
        .await
    }

    async fn synced(&self) -> Result<()> {
        self.stage.all_synced(Kind::BENCH, &self.namespace, self.arguments.size.resources).await
    }

    async fn quiet(&self) -> Result<()> {
        self.stage.quiet(Duration::from_secs(2)).await
    }

    pub(crate) async fn latency(&self) -> Result<()> {
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
    pub(crate) async fn change_one_by_one(&self) -> Result<Vec<Duration>> {
        self.workload.change_one_by_one().await
    }

    pub(crate) async fn drift(&self) -> Result<()> {
        let mark = self.stage.plane.audit()?.mark()?;
        let mut times = self.workload.drift_one_by_one().await?;
        self.quiet().await?;
        let count = requests(&self.stage, HOST, mark)?.count;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let each = count as f64 / times.len() as f64;
        say(&format!(
            "drift repair: p50 {:.1} ms, p99 {:.1} ms; {each:.2} requests each",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.99)
        ));
        Ok(())
    }

    pub(crate) async fn restart(&mut self) -> Result<()> {
        if let Some(host) = self.host.take() {
            host.stop(Duration::from_secs(10)).await?;
        }
        let mark = self.stage.plane.audit()?.mark()?;
        let started = Instant::now();
        let host = self.stage.host_of_image().await?;
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let wanted = self.arguments.size.resources as f64;
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
    pub(crate) async fn swap(&self) -> Result<()> {
        let mut seen = self.workload.deployments();
        let mut times = Vec::new();
        for swap in 0..self.arguments.swaps {
            let labelled = swap % 2 == 0;
            let component = if labelled { "bench-labelled" } else { "bench-guest" };
            while seen.try_recv().is_ok() {}
            let started = Instant::now();
            self.stage.push("bench", component).await?;
            let first = tokio::time::timeout(SOON, async {
                while let Some(change) = seen.recv().await {
                    if change.is_labelled == labelled {
                        return Some(change.at);
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
            self.arguments.size.resources
        ));
        Ok(())
    }
}
