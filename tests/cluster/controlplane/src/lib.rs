//! A real Kubernetes control plane on this machine: etcd, kube-apiserver and, if
//! asked for, kube-controller-manager. For tests, benches and the demo.
//!
//! ```no_run
//! # fn main() -> Result<(), innkeeper_controlplane::Error> {
//! use innkeeper_controlplane::{ControlPlane, Options};
//!
//! let plane = ControlPlane::start(&Options::default())?;
//! println!("KUBECONFIG={}", plane.kubeconfig().display());
//! # Ok(())
//! # }
//! ```
//!
//! # Where the programs come from
//!
//! See [`Programs`]: `KUBEBUILDER_ASSETS` first, else the Go program next to this
//! crate, built once and kept in the user's cache folder.
//!
//! # Guarantees
//!
//! - All state lies under one folder, which is removed at the end.
//! - Everything listens on 127.0.0.1 only, on ports that were free (with a node, the API server on
//!   an address of this machine that only the node reaches).
//! - Processes end with the [`ControlPlane`], also when the test panics, and when the
//!   process that started them is killed ([`Watchdog`] sees its pipe close). Each is
//!   ended by its own pid.
//!
//! # Absent here
//!
//! No Kubernetes client and no async: `cargo xtask` links this crate and must build
//! soon. Clients for tests are in `innkeeper-cluster-tests`.

mod audit;
mod background;
mod certificates;
mod error;
mod flags;
mod kubeconfig;
mod options;
mod plane;
mod port;
mod process;
mod programs;
mod readiness;
mod running;
mod state_folder;
mod watchdog;

pub use audit::{AuditEvent, AuditFilter, AuditLog};
pub use background::Background;
pub use error::Error;
pub use kubeconfig::Kubeconfig;
pub use options::{NodeSide, Options};
pub use plane::ControlPlane;
pub use port::free_address;
pub use process::{Process, by, command_line, tail};
pub use programs::{GoProgram, Programs, cache_folder};
pub use readiness::answers;
pub use watchdog::Watchdog;
