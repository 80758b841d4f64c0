//! `innkeeper simulate`: runs an empty simulated cluster on a port for kubectl.

use std::path::PathBuf;

use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::{Options, Server, Time};
use jiff::{SignedDuration, Timestamp};
use tokio::signal::unix::{SignalKind, signal};

use crate::out::{self, Page};

/// Arguments of `innkeeper simulate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Port of 127.0.0.1 for HTTPS and plain HTTP; 0 chooses a free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// File for the kubeconfig, which must not exist. The command removes it at the end [default: a
    /// temporary file].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Freeze the time of the cluster: controllers run, but no timer expires.
    #[arg(long)]
    freeze_time: bool,
    /// Seed of everything random in the cluster: uids and generated names.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Interval in seconds at which old versions expire: a list that continues at one gets 410. 0:
    /// none expires.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    compaction_interval: u32,
}

/// Runs the command until a signal.
///
/// # Errors
/// If the port is in use, or the kubeconfig exists or cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(simulate(arguments))
}

async fn simulate(arguments: &Arguments) -> anyhow::Result<()> {
    // Before the kubeconfig is written, so that an early signal still removes it.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let time = if arguments.freeze_time { Time::Still } else { Time::Wall };
    let simulator = Simulator::with(arguments.seed, Timestamp::now(), Controllers::all());
    simulator.compact_every(SignedDuration::from_secs(arguments.compaction_interval.into()));
    let server = Server::start(simulator, &Options { port: arguments.port, time }).await?;
    let path = arguments.kubeconfig.clone().unwrap_or_else(|| {
        let name = format!("innkeeper-simulator-{}.kubeconfig", std::process::id());
        std::env::temp_dir().join(name)
    });
    let path = std::path::absolute(path)?;
    let kubeconfig = server.write_kubeconfig(&path)?;
    let mut page = Page::default();
    page.line(format_args!(
        "The simulated cluster runs at {} until Ctrl-C. To use it with kubectl:",
        server.url()
    ));
    page.line(format_args!("  export KUBECONFIG={}", kubeconfig.path().display()));
    out::page(&page)?;
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    server.stop().await;
    Ok(())
}
