//! The server, its options and its lifetime.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_simulator::Simulator;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::Error;
use crate::answer::Answerer;
use crate::connection;
use crate::credentials::Credentials;
use crate::kubeconfig::{self, KubeconfigFile};
use crate::stop::Stop;

/// How often the controllers run.
const TICK: Duration = Duration::from_millis(25);
/// Maximum time until connections end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// How time passes in the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// The time follows the wall clock.
    #[default]
    Wall,
    /// The time is frozen. Controllers run, but no timer expires.
    Still,
    /// The caller advances the time and runs the controllers.
    Given,
}

/// The options of a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The port of 127.0.0.1; 0 for a free one.
    pub port: u16,
    /// How time passes.
    pub time: Time,
}

/// A simulator on a port. Dropping this value stops the server.
pub struct Server {
    address: SocketAddr,
    credentials: Credentials,
    stop: watch::Sender<bool>,
    accepting: Option<JoinHandle<()>>,
    ticking: Option<JoinHandle<()>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        formatter.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the server on the tokio runtime of the caller.
    ///
    /// # Errors
    /// If the port is in use, or the certificates cannot be made.
    pub async fn start(simulator: Simulator, options: &Options) -> Result<Self, Error> {
        let requested = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listen = |source| Error::Listen { address: requested, source };
        let credentials = Credentials::make()?;
        simulator.set_root_ca(&credentials.ca_pem);
        let listener = TcpListener::bind(requested).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = Stop::new();
        let ticking = (options.time != Time::Given)
            .then(|| tokio::spawn(tick(simulator.clone(), options.time, stopped.clone())));
        let answerer = Arc::new(Answerer {
            simulator,
            token: credentials.token.clone(),
            stop: stopped.clone(),
        });
        let acceptor = credentials.acceptor.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    () = stopped.clone().requested() => break,
                    _ = connections.join_next(), if !connections.is_empty() => {}
                    accepted = listener.accept() => {
                        // An error is a client that disconnected before the accept.
                        let Ok((stream, _)) = accepted else { continue };
                        let one = connection::serve(
                            stream, acceptor.clone(), answerer.clone(), stopped.clone(),
                        );
                        connections.spawn(one);
                    }
                }
            }
            drop(listener);
            let all = async { while connections.join_next().await.is_some() {} };
            if tokio::time::timeout(STOP_TIMEOUT, all).await.is_err() {
                connections.shutdown().await;
            }
        });
        Ok(Self { address, credentials, stop, accepting: Some(accepting), ticking })
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Writes a kubeconfig for the admin. The file contains a secret; only its owner may read it.
    ///
    /// # Errors
    /// If the file exists already, or cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<KubeconfigFile, Error> {
        KubeconfigFile::write(path, &kubeconfig::text(&self.url(), &self.credentials))
    }

    /// Stops the server: watches end, running requests finish.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        for task in [self.accepting.take(), self.ticking.take()].into_iter().flatten() {
            // A task that panicked has ended too.
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Advances the time and runs the controllers.
async fn tick(simulator: Simulator, time: Time, stop: Stop) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.clone().requested() => return,
            _ = ticks.tick() => {}
        }
        let behind = Timestamp::now().duration_since(simulator.now());
        if time == Time::Wall && behind.is_positive() {
            simulator.advance(behind);
        } else {
            simulator.settle();
        }
    }
}
