//! `innkeeper simulate`: runs an empty simulated cluster on a port for kubectl, with faults for a
//! client under test.

mod client;
mod faults;
mod host_pods;

use std::path::{Path, PathBuf};

use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::{Options, Server, Time};
use jiff::{SignedDuration, Timestamp};

use crate::out::{self, Page};
use crate::signals::EndSignals;
use crate::simulate::faults::Faults;

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
    /// Inject the faults of a plan into the requests of a client under test, which has a kubeconfig
    /// of its own: the file of --kubeconfig with `.client` at its end. The plan is a list of faults
    /// or a test plan of Sieve (docs/client-faults.md).
    #[arg(long, value_name = "PLAN")]
    faults: Option<PathBuf>,
    /// The client under test is each program with a User-Agent that begins with this, with any
    /// kubeconfig.
    #[arg(long, value_name = "PREFIX", requires = "faults")]
    faults_agent: Option<String>,
    /// Command that runs the client under test, by `sh -c` with KUBECONFIG set. It is killed where
    /// the plan ends the client, and starts again whenever it has ended.
    #[arg(long, value_name = "COMMAND", requires = "faults")]
    faults_exec: Option<String>,
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
    let mut signals = EndSignals::listen()?;
    let time = if arguments.freeze_time { Time::Still } else { Time::Wall };
    let options = Options { port: arguments.port, time };
    let simulator = Simulator::with(arguments.seed, Timestamp::now(), Controllers::all());
    simulator.script_pods(host_pods::pod_script());
    simulator.compact_every(SignedDuration::from_secs(arguments.compaction_interval.into()));
    let mut faults = match &arguments.faults {
        Some(plan) => {
            let (agent, command) = (&arguments.faults_agent, &arguments.faults_exec);
            Some(Faults::read(plan, agent.clone(), command.clone(), &simulator)?)
        }
        None => None,
    };
    let interceptor = faults.as_ref().map(Faults::for_everybody);
    let mut server = Server::start_intercepted(simulator, &options, interceptor).await?;
    let path = arguments.kubeconfig.clone().unwrap_or_else(|| {
        let name = format!("innkeeper-simulator-{}.kubeconfig", std::process::id());
        std::env::temp_dir().join(name)
    });
    let path = std::path::absolute(path)?;
    let kubeconfig = server.write_kubeconfig(&path)?;
    if let Some(faults) = &mut faults {
        faults.serve(&mut server, &path).await?;
    }
    print(&server, kubeconfig.path(), faults.as_ref())?;
    let injecting = async {
        match &mut faults {
            Some(faults) => faults.inject().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        biased;
        () = signals.received() => Ok(()),
        result = injecting => result,
    };
    if let Some(faults) = &faults {
        // With the terminal, the reader of standard output may be gone.
        let _ = out::page(&faults.pending());
    }
    server.stop().await;
    result
}

fn print(server: &Server, kubeconfig: &Path, faults: Option<&Faults>) -> anyhow::Result<()> {
    let mut page = Page::default();
    page.line(format_args!(
        "The simulated cluster runs at {} until Ctrl-C. To use it with kubectl:",
        server.url()
    ));
    page.line(format_args!("  export KUBECONFIG={}", kubeconfig.display()));
    if let Some(faults) = faults {
        faults.describe(&mut page);
    }
    out::page(&page)
}
