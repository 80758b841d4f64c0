//! A simulated cluster with an operator in this process, and its port for kubectl.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use innkeeper_core::host_objects::HOST_NAMESPACE;
use innkeeper_lab::{Api, Guests, Lab, Modules, Setup};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_simulator_server::{Options, Server, Time};
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::backend::Backend;
use super::constants::{HEAD_START, NAMESPACE};
use super::manifests::{self, Components};
use super::stop::{Signals, Stop};

/// How long the demo waits for one condition, in virtual time.
const TIMEOUT: Duration = Duration::from_mins(3);

/// A simulated cluster with an operator.
pub(super) struct SimulatedCluster(Lab);

impl SimulatedCluster {
    /// Creates the demo's objects in the simulator, and starts the operator on it.
    ///
    /// # Errors
    /// If the simulator refuses an object, or the operator does not start.
    pub(super) async fn start(
        simulator: Simulator,
        guests: &Guests,
        components: &Components,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let mut objects = Vec::new();
        for namespace in [HOST_NAMESPACE, NAMESPACE] {
            objects.push(manifests::namespace(namespace));
        }
        objects.extend(manifests::definition()?);
        objects.extend(manifests::modules(components)?);
        let setup = Setup { modules: Modules::OfCluster, objects, ..Setup::new(seed) };
        Ok(Self(Lab::on(simulator, guests, setup).await?))
    }
}

impl Backend for SimulatedCluster {
    fn api(&self) -> &Api {
        self.0.api()
    }

    fn has_own_clock(&self) -> bool {
        false
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    async fn advance(&mut self, time: Duration) -> anyhow::Result<()> {
        self.0.pass(time).await;
        Ok(())
    }

    async fn end(self, _print: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        self.0.end().await;
        Ok(())
    }
}

/// An empty cluster with all controllers, whose clock starts [`HEAD_START`] in the past.
pub(super) fn simulator(seed: u64) -> Simulator {
    Simulator::with(seed, Timestamp::now() - HEAD_START, Controllers::all())
}

/// Serves the simulator on a port for kubectl, and catches signals, on a thread of its own.
pub(super) struct SimulatorPort {
    kubeconfig: PathBuf,
    end: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl SimulatorPort {
    /// Starts the server and writes its kubeconfig.
    ///
    /// # Errors
    /// If the port, the kubeconfig or the thread cannot be made.
    pub(super) fn start(simulator: Simulator, stop: Stop) -> anyhow::Result<Self> {
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
                        () = signals.next() => stop.request(),
                    }
                }
                server.stop().await;
                drop(kubeconfig);
            });
        });
        let thread = thread.context("the demo cannot start the thread of its API server")?;
        Ok(Self { kubeconfig: path, end, thread })
    }

    /// The kubeconfig of the cluster. Its file exists until [`Self::stop`].
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Stops the server and removes the kubeconfig.
    ///
    /// # Errors
    /// If the thread panicked.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        // The send fails only if the thread has ended already.
        let _ = self.end.send(());
        self.thread.join().map_err(|_| anyhow!("the thread of the demo's API server panicked"))
    }
}
