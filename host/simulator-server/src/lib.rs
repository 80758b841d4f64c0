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
//! - It listens on 127.0.0.1 only. One port takes HTTPS and plain HTTP: the first byte of a
//!   connection tells which.
//! - Whoever has the token of the kubeconfig may do everything, and act as others; whoever has none
//!   is `system:anonymous`, who may do nothing but ask for the version and the health.
//! - Watches are told what happens when it happens; they end when the server stops, and cost
//!   nothing any more when their client has gone.
//!
//! # Absent here
//! What is answered: the simulator decides that, without knowing of sockets. Time: see [`Time`].

mod answer;
mod connection;
mod credentials;
mod error;
mod kubeconfig;
mod server;
mod stop;

pub use error::Error;
pub use kubeconfig::KubeconfigFile;
pub use server::{Options, Server, Time};
