//! The measurements.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Parser;
use tempfile::TempDir;

use crate::api::Api;
use crate::load::{Load, Measured};
use crate::pool::Pool;
use crate::program::{Host, Program, simulate};
use crate::review::{binding_review, pod, pod_review};
use crate::sample::median;
use crate::setup::{self, Policy};
use crate::usage::{Usage, reset_peak};

/// Measures the admission server of the program `innkeeper` under load.
#[derive(Parser)]
pub struct Arguments {
    /// The program.
    #[arg(long, env = "INNKEEPER_BIN")]
    pub program: PathBuf,
    /// Connections, and users.
    #[arg(long, default_value_t = 500)]
    pub connections: usize,
    /// Policies, each of another component.
    #[arg(long, default_value_t = 17)]
    pub policies: usize,
    /// RoleBindings in the cluster of the context-aware policy.
    #[arg(long, default_value_t = 10_000)]
    pub bindings: usize,
    /// Operations a second of all users together, for each load with think time.
    #[arg(long, value_delimiter = ',', default_value = "10,30,60")]
    pub rates: Vec<f64>,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Rounds. Each makes all measurements once.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Let the host allocate memory as glibc does by default, not as deploy/host says.
    #[arg(long)]
    pub default_malloc: bool,
    /// Make only this measurement.
    #[arg(long, value_enum)]
    pub only: Option<Measurement>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Measurement {
    /// Policies that read nothing but the request, with many connections.
    Many,
    /// A policy that lists all RoleBindings in each review.
    Context,
    /// The audit of all RoleBindings.
    Audit,
}

/// A host with active policies.
struct Stage {
    host: Host,
    pid: u32,
    bundle: String,
    api: Api,
    _cluster: Program,
    _folder: TempDir,
}

impl Stage {
    /// Fills a simulated cluster and starts a host that reviews with these policies.
    async fn new(
        arguments: &Arguments,
        policies: &[Policy],
        fill: impl AsyncFnOnce(&Api) -> Result<()>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-load-").tempdir()?;
        let (cluster, api, kubeconfig) = simulate(&arguments.program, folder.path()).await?;
        setup::install(&api).await?;
        setup::put_policies(&api, policies).await?;
        fill(&api).await?;
        // The first host compiles; the measured one loads compiled code, as after each restart.
        let start = async || {
            let is_default = arguments.default_malloc;
            Host::start(&arguments.program, &kubeconfig, folder.path(), is_default).await
        };
        let first = start().await?;
        setup::until_active(&api, policies).await?;
        first.program.end().await?;
        let host = start().await?;
        let bundle = setup::until_active(&api, policies).await?;
        let pid = host.program.pid()?;
        Ok(Self { host, pid, bundle, api, _cluster: cluster, _folder: folder })
    }

    async fn pool(&self, connections: usize) -> Result<Arc<Pool>> {
        Ok(Arc::new(Pool::open(self.host.admission, &self.bundle, connections).await?))
    }
}

/// Makes all measurements and prints them.
///
/// # Errors
/// If the program does not do what it should, or a request is not allowed.
pub async fn run(arguments: &Arguments) -> Result<()> {
    let includes = |one| arguments.only.is_none_or(|only| only == one);
    if includes(Measurement::Many) {
        many_policies(arguments).await?;
    }
    if includes(Measurement::Context) {
        context_aware(arguments).await?;
    }
    if includes(Measurement::Audit) {
        audit(arguments).await?;
    }
    Ok(())
}

/// Policies that read nothing but the request, with many connections.
async fn many_policies(arguments: &Arguments) -> Result<()> {
    let policies = Policy::many(arguments.policies);
    let stage = Stage::new(arguments, &policies, async |_| Ok(())).await?;
    let idle = Usage::of(stage.pid)?;
    let pool = stage.pool(arguments.connections).await?;
    let connected = Usage::of(stage.pid)?;
    say(&format!(
        "{} policies, {} connections, a Pod of {} bytes in a request of {} bytes\n\
         host idle: {}; with the connections: {}",
        policies.len(),
        arguments.connections,
        pod().to_string().len(),
        pod_review().len(),
        memory(&idle),
        memory(&connected),
    ));
    let paths: Vec<String> = policies.iter().map(Policy::path).collect();
    let mut figures = Figures::default();
    for _ in 0..arguments.rounds {
        for (name, load) in loads(arguments, &paths) {
            figures.add(&name, load.run(&pool, stage.pid).await?);
        }
    }
    say(&figures.table());
    say(&format!("host at the end: {}", memory(&Usage::of(stage.pid)?)));
    let failures = stage.host.metric("innkeeper_policy_review_failures_total").await?;
    let refused = stage.host.metric("innkeeper_admission_refused_total").await?;
    say(&format!("failed reviews: {failures}, refused requests: {refused}"));
    Ok(())
}

/// The loads of one round. Each operation asks all policies at once, as the API server does, or one
/// of them.
fn loads(arguments: &Arguments, paths: &[String]) -> Vec<(String, Load)> {
    let load = |rate: Option<f64>, is_single| Load {
        users: arguments.connections,
        think_time: rate.map_or(Duration::ZERO, |rate| think_time(arguments.connections, rate)),
        operation: paths.to_vec(),
        is_single,
        body: pod_review(),
        time: Duration::from_secs_f64(arguments.seconds),
    };
    let mut loads = Vec::new();
    for rate in &arguments.rates {
        let posts = paths.len();
        loads.push((format!("{rate} requests/s of {posts} posts"), load(Some(*rate), false)));
    }
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let posts = arguments.rates.last().copied().unwrap_or(1.0) * paths.len() as f64;
    loads.push((format!("{posts} single posts/s"), load(Some(posts), true)));
    loads.push(("single posts without think time".to_owned(), load(None, true)));
    loads
}

/// How long users think so that all of them together make this many operations a second.
fn think_time(users: usize, rate: f64) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let seconds = users as f64 / rate;
    Duration::from_secs_f64(seconds)
}

/// A policy that lists all RoleBindings in each review.
async fn context_aware(arguments: &Arguments) -> Result<()> {
    let policies = [Policy::context_aware()];
    let count = arguments.bindings;
    let fill = async |api: &Api| setup::put_bindings(api, count).await;
    let stage = Stage::new(arguments, &policies, fill).await?;
    let started = Usage::of(stage.pid)?;
    let body = binding_review();
    let path = policies[0].path();
    let pool = stage.pool(4).await?;
    reset_peak(stage.pid)?;
    let first = Instant::now();
    pool.post(&path, body.clone()).await?;
    let first = first.elapsed().as_secs_f64() * 1e3;
    say(&format!(
        "\n1 policy that lists {count} RoleBindings\nhost idle: {}, peak of its start {:.1}; first review {first:.1} ms, then {}",
        memory(&started),
        started.peak_mib,
        memory(&Usage::of(stage.pid)?),
    ));
    let mut figures = Figures::default();
    for _ in 0..arguments.rounds {
        for users in [1, 4] {
            let load = context_load(&path, &body, users, Duration::ZERO, arguments.seconds);
            figures.add(
                &format!("{users} users without think time"),
                load.run(&pool, stage.pid).await?,
            );
        }
        let think_time = think_time(4, 10.0);
        let load = context_load(&path, &body, 4, think_time, arguments.seconds);
        figures.add("4 users, 10 requests/s", load.run(&pool, stage.pid).await?);
    }
    say(&figures.table());
    say(&format!("host at the end: {}", memory(&Usage::of(stage.pid)?)));
    Ok(())
}

/// The audit of all RoleBindings by a policy that reads nothing.
async fn audit(arguments: &Arguments) -> Result<()> {
    let count = arguments.bindings;
    let fill = async |api: &Api| setup::put_bindings(api, count).await;
    let stage = Stage::new(arguments, &[], fill).await?;
    let idle = Usage::of(stage.pid)?;
    reset_peak(stage.pid)?;
    let policy = Policy::of_bindings();
    let put = Instant::now();
    setup::put_policies(&stage.api, std::slice::from_ref(&policy)).await?;
    let reviewed = setup::until_audited(&stage.api, &policy, count).await?;
    let after = Usage::of(stage.pid)?;
    say(&format!(
        "\n1 policy that audits {count} RoleBindings: {reviewed}\n\
         {:.0} s from the Module to the last review, {:.1} s of CPU; host idle before: {}; \
         afterwards: {}, peak {:.1} MiB",
        put.elapsed().as_secs_f64(),
        after.cpu_s - idle.cpu_s,
        memory(&idle),
        memory(&after),
        after.peak_mib,
    ));
    Ok(())
}

fn context_load(
    path: &str,
    body: &Bytes,
    users: usize,
    think_time: Duration,
    seconds: f64,
) -> Load {
    Load {
        users,
        think_time,
        operation: vec![path.to_owned()],
        is_single: true,
        body: body.clone(),
        time: Duration::from_secs_f64(seconds),
    }
}

/// All measurements of each load, in the order of the loads.
#[derive(Default)]
struct Figures {
    names: Vec<String>,
    by_name: BTreeMap<String, Vec<Measured>>,
}

impl Figures {
    fn add(&mut self, name: &str, measured: Measured) {
        if !self.by_name.contains_key(name) {
            self.names.push(name.to_owned());
        }
        self.by_name.entry(name.to_owned()).or_default().push(measured);
    }

    /// A table in Markdown: the median of the rounds, and the lowest and highest p99.
    fn table(&self) -> String {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let mut text = format!(
            "load of the machine: {}\n\
             | load | requests | p50, ms | p99, ms (lowest, highest) | posts/s | CPU a post, us | cores of the host, of the load | peak, MiB |\n\
             |---|---|---|---|---|---|---|---|\n",
            load.split_whitespace().next().unwrap_or_default()
        );
        for name in &self.names {
            let Some(rounds) = self.by_name.get(name) else { continue };
            let of = |figure: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(figure));
            let p99 = |measured: &Measured| measured.operations.quantile_ms(0.99);
            let lowest = rounds.iter().map(p99).fold(f64::INFINITY, f64::min);
            let highest = rounds.iter().map(p99).fold(0.0, f64::max);
            let operations: usize = rounds.iter().map(|one| one.operations.len()).sum();
            let _ = writeln!(
                text,
                "| {name} | {operations} | {:.2} | {:.2} ({lowest:.2}, {highest:.2}) | {:.0} | {:.0} | {:.2}, {:.2} | {:.1} |",
                of(&|one| one.operations.quantile_ms(0.5)),
                of(&p99),
                of(&|one| one.posts_per_second),
                of(&|one| one.cpu_us),
                of(&|one| one.cores),
                of(&|one| one.load_cores),
                of(&|one| one.peak_mib),
            );
        }
        text
    }
}

fn memory(usage: &Usage) -> String {
    format!("{:.1} MiB, {:.1} of them anonymous", usage.rss_mib, usage.anonymous_mib)
}

#[allow(clippy::print_stdout, reason = "this program prints figures")]
fn say(text: &str) {
    println!("{text}");
}

/// The program that cargo has built with the tests: above the folder of the test's own program.
///
/// # Errors
/// If it is not there.
pub fn built_program() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let path = test.ancestors().nth(2).map(|folder| folder.join("innkeeper"));
    path.filter(|path| path.is_file()).context("run `cargo build -p innkeeper-cli` first")
}
