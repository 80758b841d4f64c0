//! `innkeeper demo`: the operator with the guests of this repository on a simulated cluster or a real one, and what
//! they do when things happen. kubectl works on it meanwhile.

mod activity;
mod cluster;
mod paper;
mod place;
mod real;
mod screen;
mod stories;
mod teller;
mod view;

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, anyhow};
use innkeeper_lab::Guests;
use innkeeper_simulator::Simulator;
use innkeeper_simulator_server::{Options, Server, Time};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::out;
use activity::Activity;
use cluster::Components;
use place::Place;
use real::{Named, Real};
use teller::{Pace, Stop, Stopped, Teller};
use view::View;

/// Arguments of `innkeeper demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the guests' components, as `cargo xtask guests` fills it.
    #[arg(long, value_name = "DIR", default_value = "guests/target/components")]
    components: PathBuf,
    /// Keep compiled guests in this folder, which is its owner's only, so that the next demo starts at once.
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Only compile the guests into the folder of --cache-dir, so that the next demo starts at once.
    #[arg(long, requires = "cache_dir", conflicts_with_all = ["kubeconfig", "once"])]
    compile_only: bool,
    #[command(flatten)]
    manner: Manner,
    /// What is random in the simulated cluster (uids, made names) comes from this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "kubeconfig")]
    seed: u64,
    /// Play on the cluster of this kubeconfig instead of a simulated one: Innkeeper and its guests are installed there,
    /// and taken away in the end. A cluster that has them already is left alone. Where there is no node, the pods of the
    /// demo seem to run. Neither KUBECONFIG nor ~/.kube/config is read.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; has to be said if there are several.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
}

/// How it is told.
#[derive(clap::Args)]
struct Manner {
    /// End when all stories are told; the exit status tells whether they went as they should.
    #[arg(long)]
    once: bool,
    /// Do not wait for the clock: an hour passes as fast as the machine can. On a real cluster, go on as soon as a
    /// story is told.
    #[arg(long)]
    fast: bool,
    /// Write lines, not tables, also on a terminal.
    #[arg(long)]
    plain: bool,
}

impl Manner {
    fn pace(&self) -> Pace {
        if self.fast { Pace::Fast } else { Pace::Clock }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let components = Components::read(&arguments.components)?;
    if let Some(folder) = arguments.cache_dir.as_deref().filter(|_| arguments.compile_only) {
        return components.compile(&Guests::kept_in(folder)?);
    }
    let told = match &arguments.kubeconfig {
        Some(kubeconfig) => on_real(arguments, kubeconfig, &components),
        None => on_simulated(arguments, &components),
    };
    match told {
        Err(error) if error.is::<Stopped>() && !arguments.manner.once => Ok(()),
        told => told,
    }
}

/// Tells all, and ends what was started. An error of the stories goes before one of the end.
async fn tell(mut teller: Teller, components: &Components, once: bool) -> anyhow::Result<()> {
    let told = stories::tell(&mut teller, components, once).await;
    match (told, teller.end().await) {
        // That somebody stopped it is no trouble; that something is left is.
        (Err(told), Err(left)) if told.is::<Stopped>() => Err(left),
        (Err(told), Err(left)) => Err(anyhow!("{told:#}; {left:#}")),
        (told, ended) => told.and(ended),
    }
}

fn on_simulated(arguments: &Arguments, components: &Components) -> anyhow::Result<()> {
    let activity = Activity::start()?;
    let stop = Stop::default();
    let simulator = cluster::simulator(arguments.seed);
    let served = Served::start(simulator.clone(), stop.clone())?;
    let guests = match &arguments.cache_dir {
        Some(folder) => Guests::kept_in(folder)?,
        None => Guests::new()?,
    };
    let told = innkeeper_lab::block_on(async {
        let lab = cluster::start(simulator, &guests, components, arguments.seed).await?;
        let place = Place::Simulated(Box::new(lab));
        let view = View::new(arguments.manner.plain, &place.title(), &served.kubeconfig)?;
        let teller = Teller::new(place, activity, view, arguments.manner.pace(), stop);
        tell(teller, components, arguments.manner.once).await
    })?;
    served.end();
    told
}

fn on_real(
    arguments: &Arguments,
    kubeconfig: &Path,
    components: &Components,
) -> anyhow::Result<()> {
    let named = Named::new(kubeconfig, arguments.context.as_deref())?;
    let activity = Activity::start()?;
    let stop = Stop::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime does not start")?;
    let told = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let hears = stop.clone();
        tokio::spawn(async move {
            loop {
                signals.next().await;
                hears.say();
            }
        });
        let cache = arguments.cache_dir.as_deref();
        let real = Real::start(&named, components, cache, stop.clone()).await?;
        let place = Place::Real(Box::new(real));
        let view = View::new(arguments.manner.plain, &place.title(), &named.kubeconfig);
        let view = match view {
            Ok(view) => view,
            Err(error) => {
                place.end(&mut |_| ()).await?;
                return Err(error);
            }
        };
        let teller = Teller::new(place, activity, view, arguments.manner.pace(), stop);
        tell(teller, components, arguments.manner.once).await
    });
    // Compiling children are not waited for.
    runtime.shutdown_background();
    told
}

/// What ends the demo.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The cluster on a port, for kubectl, on a thread of its own; and who hears of Ctrl-C.
struct Served {
    kubeconfig: PathBuf,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Served {
    fn start(simulator: Simulator, stop: Stop) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let path =
            std::env::temp_dir().join(format!("innkeeper-demo-{}.kubeconfig", std::process::id()));
        let (server, kubeconfig, mut signals) = runtime.block_on(async {
            let signals = Signals::new()?;
            let options = Options { port: 0, time: Time::Given };
            let server = Server::start(simulator, &options).await?;
            let kubeconfig = server.write_kubeconfig(&path)?;
            anyhow::Ok((server, kubeconfig, signals))
        })?;
        let thread = thread::Builder::new().name("kubectl".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::pin!(ended);
                loop {
                    tokio::select! {
                        biased;
                        _ = &mut ended => break,
                        () = signals.next() => stop.say(),
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
