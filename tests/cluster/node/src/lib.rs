//! A real Kubernetes node on this machine, for a control plane of `innkeeper-controlplane`:
//! containerd, runc, CNI, a registry, kubelet, kube-proxy, scheduler and cluster DNS. For tests
//! and for `cargo xtask cluster up --node`. Needs Linux and root.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! let cluster = innkeeper_node::Cluster::start(&Default::default(), &mut |line| println!("{line}"))?;
//! println!("KUBECONFIG={}", cluster.plane().kubeconfig().display());
//! println!("NodePorts at {}", cluster.node().address());
//! # Ok(())
//! # }
//! ```
//!
//! | room | what it is |
//! |---|---|
//! | [`Packages`] | the programs that are not ours: those of the machine, or Debian's, unpacked into a cache folder |
//! | [`Machine`] | namespaces of the kernel in which a node runs, and the cable to the host |
//! | [`Node`] | the programs of a node in a machine, and their settings; a second one that can go away |
//! | [`Cluster`] | a control plane and its node, for as long as the value lives |
//! | [`background`] | the same for as long as a person wants it |
//!
//! # Guarantees
//!
//! - All processes of a node run in one PID namespace, whose first process is ended by its pid: the
//!   kernel then ends all others, and with them go mounts, interfaces and rules of the firewall.
//! - All state lies in one folder, which is removed. Outside of it there are one network interface
//!   and one folder per hierarchy of control groups, both named `innkeeper-<number>`.
//! - Nodes of different clusters do not see each other: the same addresses and ports are used in
//!   each.
//! - Nothing is installed, and no setting of the machine is changed.
//!
//! # Absent here
//!
//! No Kubernetes client and no async, as in `innkeeper-controlplane`.

pub mod background;
mod cluster;
mod control_group;
pub mod disk;
mod link;
mod machine;
mod node;
mod packages;
mod second;
mod settings;

pub use cluster::Cluster;
pub use machine::Machine;
pub use node::{Node, programs};
pub use packages::Packages;

pub use innkeeper_controlplane::Options;
