//! The server, its options and its lifetime.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use innkeeper_simulator::Simulator;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::Error;
use crate::answer::Answerer;
use crate::credentials::Credentials;
use crate::interceptor::Interceptor;
use crate::kubeconfig::{self, KubeconfigFile};
use crate::listener::{CONNECTIONS_MAX, Listener};
use crate::stop::Stop;

/// How often the controllers run.
const TICK: Duration = Duration::from_millis(25);

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
    simulator: Simulator,
    credentials: Credentials,
    stop: watch::Sender<bool>,
    stopped: Stop,
    listener: Listener,
    further: Vec<Listener>,
    ticking: Option<JoinHandle<()>>,
}

/// A further port of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: SocketAddr,
}

impl Endpoint {
    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials.
        formatter.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the server on the tokio runtime of the caller.
    ///
    /// # Errors
    /// If the port is in use, or the certificates cannot be made.
    pub async fn start(simulator: Simulator, options: &Options) -> Result<Self, Error> {
        Self::start_intercepted(simulator, options, None).await
    }

    /// The same, with a function between the clients of the port and the simulator.
    ///
    /// # Errors
    /// If the port is in use, or the certificates cannot be made.
    pub async fn start_intercepted(
        simulator: Simulator,
        options: &Options,
        interceptor: Option<Interceptor>,
    ) -> Result<Self, Error> {
        let credentials = Credentials::make()?;
        simulator.set_root_ca(&credentials.ca_pem);
        let (stop, stopped) = Stop::new();
        let answerer = Answerer {
            simulator: simulator.clone(),
            token: credentials.token.clone(),
            stop: stopped.clone(),
            interceptor,
        };
        let acceptor = credentials.acceptor.clone();
        let listener =
            Listener::start(options.port, acceptor, answerer, stopped.clone(), CONNECTIONS_MAX)
                .await?;
        let ticking = (options.time != Time::Given)
            .then(|| tokio::spawn(tick(simulator.clone(), options.time, stopped.clone())));
        Ok(Self { simulator, credentials, stop, stopped, listener, further: Vec::new(), ticking })
    }

    /// Serves the same simulator on a further free port, with a function between its clients and
    /// the simulator.
    ///
    /// # Errors
    /// If the system gives no port.
    pub async fn serve_also(&mut self, interceptor: Interceptor) -> Result<Endpoint, Error> {
        let answerer = Answerer {
            simulator: self.simulator.clone(),
            token: self.credentials.token.clone(),
            stop: self.stopped.clone(),
            interceptor: Some(interceptor),
        };
        let acceptor = self.credentials.acceptor.clone();
        let listener =
            Listener::start(0, acceptor, answerer, self.stopped.clone(), CONNECTIONS_MAX).await?;
        let endpoint = Endpoint { address: listener.address() };
        self.further.push(listener);
        Ok(endpoint)
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// Writes a kubeconfig for the admin. The file contains a secret; only its owner may read it.
    ///
    /// # Errors
    /// If the file exists already, or cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<KubeconfigFile, Error> {
        KubeconfigFile::write(path, &kubeconfig::text(&self.url(), &self.credentials))
    }

    /// Writes a kubeconfig for the admin at a further port.
    ///
    /// # Errors
    /// If the file exists already, or cannot be written.
    pub fn write_kubeconfig_for(
        &self,
        endpoint: &Endpoint,
        path: &Path,
    ) -> Result<KubeconfigFile, Error> {
        KubeconfigFile::write(path, &kubeconfig::text(&endpoint.url(), &self.credentials))
    }

    /// Stops the server: watches end, running requests finish.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.listener.ended().await;
        for listener in &mut self.further {
            listener.ended().await;
        }
        if let Some(ticking) = self.ticking.take() {
            // A task that panicked has ended too.
            let _ = ticking.await;
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
