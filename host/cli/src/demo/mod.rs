//! `innkeeper demo`: the operator with the guests of this repository on a simulated cluster, and what
//! they do when things happen. kubectl works on it meanwhile.

mod activity;
mod cluster;
mod stories;
mod teller;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, anyhow};
use innkeeper_lab::Guests;
use innkeeper_simulator::Simulator;
use innkeeper_simulator_server::{Options, Server, Time};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::out;
use activity::Activity;
use teller::Teller;

/// Arguments of `innkeeper demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the guests' components, as `cargo xtask guests` fills it.
    #[arg(long, value_name = "DIR", default_value = "guests/target/components")]
    components: PathBuf,
    /// Keep compiled guests in this folder, which is its owner's only, so that the next demo starts at once.
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// End when all stories are told; the exit status tells whether they went as they should.
    #[arg(long)]
    once: bool,
    /// Do not wait for the clock: an hour passes as fast as the machine can.
    #[arg(long)]
    fast: bool,
    /// Write lines, not tables, also on a terminal.
    #[arg(long)]
    plain: bool,
    /// What is random in the cluster (uids, made names) comes from this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let components = cluster::Components::read(&arguments.components)?;
    let activity = Activity::start()?;
    let stop = Arc::new(AtomicBool::new(false));
    let simulator = cluster::simulator(arguments.seed);
    let served = Served::start(simulator.clone(), Arc::clone(&stop))?;
    let guests = match &arguments.cache_dir {
        Some(folder) => Guests::kept_in(folder)?,
        None => Guests::new()?,
    };
    let pace = if arguments.fast { teller::Pace::Fast } else { teller::Pace::Clock };
    let told = innkeeper_lab::block_on(async {
        let lab = cluster::start(simulator, &guests, &components, arguments.seed).await?;
        let view = view::View::new(arguments.plain, &served.kubeconfig)?;
        let mut teller = Teller::new(lab, activity, view, pace, stop);
        let told = stories::tell(&mut teller, &components, arguments.once).await;
        teller.end().await;
        told
    })?;
    served.end();
    match told {
        Err(error) if error.is::<teller::Stopped>() && !arguments.once => Ok(()),
        told => told,
    }
}

/// The cluster on a port, for kubectl, on a thread of its own; and who hears of Ctrl-C.
struct Served {
    kubeconfig: PathBuf,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Served {
    fn start(simulator: Simulator, stop: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let path =
            std::env::temp_dir().join(format!("innkeeper-demo-{}.kubeconfig", std::process::id()));
        let (server, kubeconfig, mut interrupt, mut terminate) = runtime.block_on(async {
            let interrupt = signal(SignalKind::interrupt())?;
            let terminate = signal(SignalKind::terminate())?;
            let options = Options { port: 0, time: Time::Given };
            let server = Server::start(simulator, &options).await?;
            let kubeconfig = server.write_kubeconfig(&path)?;
            anyhow::Ok((server, kubeconfig, interrupt, terminate))
        })?;
        let thread = thread::Builder::new().name("kubectl".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::pin!(ended);
                loop {
                    tokio::select! {
                        biased;
                        _ = &mut ended => break,
                        _ = interrupt.recv() => stop.store(true, Ordering::SeqCst),
                        _ = terminate.recv() => stop.store(true, Ordering::SeqCst),
                    }
                }
                server.stop().await;
                drop(kubeconfig);
            });
        });
        let thread = thread.context("the cluster cannot be served")?;
        Ok(Self { kubeconfig: path, end, thread })
    }

    fn end(self) {
        // A thread that is gone has ended too.
        let _ = self.end.send(());
        if self.thread.join().is_err() {
            out::complain(&anyhow!("the thread that serves kubectl has panicked").to_string());
        }
    }
}
