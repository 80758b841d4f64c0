//! The server: what it is given, and its life.

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

/// How often the controllers work.
const TICK: Duration = Duration::from_millis(25);
/// How long connections may take to end when the server stops.
const LEAVE: Duration = Duration::from_secs(2);

/// How time passes in a simulator that is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// As on the wall.
    #[default]
    Wall,
    /// It stands still. Controllers work, and nothing that waits for a time happens.
    Still,
    /// Whoever serves it lets it pass, and the controllers work.
    Given,
}

/// How a simulator is served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// On which port of 127.0.0.1; 0 for one that is free.
    pub port: u16,
    /// How time passes.
    pub time: Time,
}

/// A simulator on a port, for as long as this value lives.
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
    /// Begins to serve, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// If the port is taken, or no certificates can be made.
    pub async fn start(simulator: Simulator, options: &Options) -> Result<Self, Error> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listen = |source| Error::Listen { address: wanted, source };
        let credentials = Credentials::make()?;
        let listener = TcpListener::bind(wanted).await.map_err(listen)?;
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
                        // One that broke off before it was taken is nobody's loss.
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
            if tokio::time::timeout(LEAVE, all).await.is_err() {
                connections.shutdown().await;
            }
        });
        Ok(Self { address, credentials, stop, accepting: Some(accepting), ticking })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Writes a kubeconfig for it, whose user may do everything. The file holds a secret and is its
    /// owner's only.
    ///
    /// # Errors
    /// If the file exists already, or cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<KubeconfigFile, Error> {
        KubeconfigFile::write(path, &kubeconfig::text(&self.url(), &self.credentials))
    }

    /// Ends it: watches end, requests that have begun are answered.
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

/// Lets time pass and the controllers work.
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
