//! `innkeeper demo`: the operator with the guests of this repository on a simulated cluster or a
//! live one, and how they react to changes. kubectl works on the cluster meanwhile.

mod activity;
mod backend;
mod constants;
mod fake_node;
mod live_cluster;
mod manifests;
mod resources;
mod runner;
mod scenarios;
mod screen;
mod simulated_cluster;
mod startup;
mod stop;
mod view;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use innkeeper_lab::Guests;

use crate::out::{self, Page};
use activity::Activity;
use backend::Backend;
use live_cluster::{ClusterConfig, LiveCluster};
use manifests::Components;
use runner::{Pace, Runner};
use simulated_cluster::{SimulatedCluster, SimulatorPort};
use startup::Startup;
use stop::{Signals, Stop, Stopped};
use view::View;

/// Arguments of `innkeeper demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the guests' components, which `cargo xtask guests` fills.
    #[arg(long, value_name = "DIR", default_value = "guests/target/components")]
    components: PathBuf,
    /// Keep compiled guests in this folder, so that the next demo starts at once. Only its owner
    /// may have access to it.
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Only compile the guests into the folder of --cache-dir, so that the next demo starts at
    /// once.
    #[arg(long, requires = "cache_dir", conflicts_with_all = ["kubeconfig", "once"])]
    compile_only: bool,
    #[command(flatten)]
    display: DisplayArgs,
    /// The seed of everything random in the simulated cluster: uids and generated names.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "kubeconfig")]
    seed: u64,
    /// Run on the cluster of this kubeconfig instead of a simulated one. The demo installs
    /// Innkeeper and its guests there, and removes them at the end. It changes nothing in a cluster
    /// that has them already. If the cluster has no node, the demo reports its own pods as running.
    /// It reads neither KUBECONFIG nor ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; required if the kubeconfig has several.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
}

/// How the demo shows the scenarios.
#[derive(clap::Args)]
struct DisplayArgs {
    /// End after the last scenario. The exit status says whether all scenarios succeeded.
    #[arg(long)]
    once: bool,
    /// Do not wait for the clock: virtual time passes as fast as the machine allows. On a live
    /// cluster, start the next scenario without a pause.
    #[arg(long)]
    fast: bool,
    /// Print lines instead of tables, also on a terminal.
    #[arg(long)]
    plain: bool,
}

impl DisplayArgs {
    fn pace(&self) -> Pace {
        if self.fast { Pace::Fast } else { Pace::Clock }
    }
}

/// Runs the demo.
///
/// # Errors
/// If a component is missing, a scenario fails, or the user interrupts `--once`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let components = Components::read(&arguments.components)?;
    if let Some(folder) = arguments.cache_dir.as_deref().filter(|_| arguments.compile_only) {
        return components.compile(&Guests::kept_in(folder)?, &mut |_| Ok(()));
    }
    let result = match &arguments.kubeconfig {
        Some(kubeconfig) => run_live(arguments, kubeconfig, &components),
        None => run_simulated(arguments, &components),
    };
    match result {
        Err(error) if error.is::<Stopped>() && !arguments.display.once => Ok(()),
        result => result,
    }
}

/// Prints where the demo runs, before anything that takes time.
fn print_title(title: &str, kubeconfig: &Path) -> anyhow::Result<()> {
    let mut page = Page::default();
    page.line(format_args!("{title} To use kubectl on it:"));
    page.line(format_args!("  export KUBECONFIG={}", kubeconfig.display()));
    page.line("");
    out::page(&page)
}

/// Runs all scenarios, and ends the operator. An error of the scenarios goes before one of the end.
async fn run_scenarios<B: Backend>(
    mut runner: Runner<B>,
    components: &Components,
    once: bool,
) -> anyhow::Result<()> {
    let result = scenarios::run(&mut runner, components, once).await;
    match (result, runner.end().await) {
        // An interrupt is no failure; objects that are left on the cluster are.
        (Err(failure), Err(left)) if failure.is::<Stopped>() => Err(left),
        (Err(failure), Err(left)) => Err(anyhow!("{failure:#}; {left:#}")),
        (result, ended) => result.and(ended),
    }
}

fn run_simulated(arguments: &Arguments, components: &Components) -> anyhow::Result<()> {
    let activity = Activity::start()?;
    let stop = Stop::default();
    let started = Instant::now();
    let simulator = simulated_cluster::simulator(arguments.seed);
    let port = SimulatorPort::start(simulator.clone(), stop.clone())?;
    print_title("Innkeeper runs its guests on a simulated cluster.", port.kubeconfig())?;

    let guests = match &arguments.cache_dir {
        Some(folder) => Guests::kept_in(folder)?,
        None => Guests::new()?,
    };
    let mut startup = Startup::new(components.len() + 1);
    let result = innkeeper_lab::block_on(async {
        components.compile(&guests, &mut |step| {
            startup.step(step)?;
            if stop.requests() > 0 { Err(Stopped.into()) } else { Ok(()) }
        })?;
        startup.step("Starting the operator")?;
        let cluster =
            SimulatedCluster::start(simulator, &guests, components, arguments.seed).await?;
        let view = View::new(arguments.display.plain, port.kubeconfig())?;
        let pace = arguments.display.pace();
        let runner = Runner::new(cluster, activity, view, pace, stop, started);
        run_scenarios(runner, components, arguments.display.once).await
    })?;
    result.and(port.stop())
}

fn run_live(
    arguments: &Arguments,
    kubeconfig: &Path,
    components: &Components,
) -> anyhow::Result<()> {
    let config = ClusterConfig::new(kubeconfig, arguments.context.as_deref())?;
    let activity = Activity::start()?;
    let stop = Stop::default();
    let started = Instant::now();
    print_title("Innkeeper runs its guests on a live cluster.", kubeconfig)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the demo cannot start its async runtime")?;
    let result = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let requested = stop.clone();
        tokio::spawn(async move {
            loop {
                signals.next().await;
                requested.request();
            }
        });
        let cache = arguments.cache_dir.as_deref();
        let cluster = LiveCluster::start(&config, components, cache, stop.clone()).await?;
        let view = match View::new(arguments.display.plain, kubeconfig) {
            Ok(view) => view,
            Err(error) => {
                cluster.end(&mut |_| ()).await?;
                return Err(error);
            }
        };
        let pace = arguments.display.pace();
        let runner = Runner::new(cluster, activity, view, pace, stop, started);
        run_scenarios(runner, components, arguments.display.once).await
    });
    // The demo does not wait for child processes that compile.
    runtime.shutdown_background();
    result
}
