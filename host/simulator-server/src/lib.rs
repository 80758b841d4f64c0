//! The simulated Kubernetes API on a port, for kubectl, curl and every other client.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use innkeeper_simulator::Simulator;
//! use innkeeper_simulator_server::{Options, Server};
//!
//! let simulator = Simulator::new(1, jiff::Timestamp::now());
//! let server = Server::start(simulator, &Options::default()).await?;
//! let file = server.write_kubeconfig("simulated.kubeconfig".as_ref())?;
//! println!("export KUBECONFIG={}", file.path().display());
//! server.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - The server listens on 127.0.0.1 only. One port serves HTTPS and plain HTTP: the first byte of
//!   a connection decides.
//! - A client with the token of the kubeconfig is the admin, with all rights and impersonation. A
//!   client without a token is `system:anonymous`, which may only read the version and the health.
//! - A port answers 1,000 connections. 24 further ones get 429; the server closes all others.
//! - Watches receive events at once. They end when the server stops, or when their client
//!   disconnects.
//!
//! # Absent here
//! The content of the responses, which the simulator decides without sockets. Time: see [`Time`].

mod answer;
mod blocking;
mod connection;
mod credentials;
mod error;
mod interceptor;
mod kubeconfig;
mod listener;
mod server;
mod stop;

pub use blocking::BlockingServer;
pub use error::Error;
pub use interceptor::{BoxError, InterceptedAnswer, Interceptor, SimulatorService};
pub use kubeconfig::KubeconfigFile;
pub use server::{Endpoint, Options, Server, Time};
