//! `innkeeper simulate`: an empty simulated cluster on a port, for kubectl.

use std::path::PathBuf;

use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::{Options, Server, Time};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};

use crate::out::{self, Page};

/// Arguments of `innkeeper simulate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The port of 127.0.0.1 to listen on, for HTTPS and plain HTTP; 0 for one that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where to write the kubeconfig, a file that does not exist yet. It is removed at the end.
    /// [default: a file in the folder of temporary files]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Time stands still: controllers work, but nothing gets older.
    #[arg(long)]
    freeze_time: bool,
    /// What is random in the cluster (uids, made names) comes from this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(simulate(arguments))
}

async fn simulate(arguments: &Arguments) -> anyhow::Result<()> {
    // Before anything is written, so that nothing is left if the end comes soon.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let time = if arguments.freeze_time { Time::Still } else { Time::Wall };
    let simulator = Simulator::with(arguments.seed, Timestamp::now(), Controllers::all());
    let server = Server::start(simulator, &Options { port: arguments.port, time }).await?;
    let path = arguments.kubeconfig.clone().unwrap_or_else(|| {
        let name = format!("innkeeper-simulator-{}.kubeconfig", std::process::id());
        std::env::temp_dir().join(name)
    });
    let path = std::path::absolute(path)?;
    let kubeconfig = server.write_kubeconfig(&path)?;
    let mut page = Page::default();
    page.line(format_args!("The simulated cluster is at {}; Ctrl-C ends it.", server.url()));
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
