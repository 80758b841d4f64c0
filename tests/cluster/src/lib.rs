//! Tools for tests of Innkeeper on a real control plane. The tests are in `tests/`.
//!
//! | tool | what it is |
//! |---|---|
//! | [`ControlPlane`], [`shared`] | etcd, API server and controller manager, with an audit log |
//! | [`Admin`] | a client with all rights: apply, get, patch as somebody else, wait |
//! | [`Proxy`] | stands between host and API server: holds events back, loses answers, counts writes |
//! | [`Host`] | the `innkeeper` program: start, ready, SIGTERM, kill -9, its log |
//! | [`NodeStage`] | a control plane with a real node, and Innkeeper installed as users install it; needs root |
//! | [`PodClient`] | a pod from which a test asks others |
//! | [`PolicyStage`] | hosts that review requests, behind a Service; kubectl |
//! | [`Load`], [`DryRun`] | a steady load of requests, every answer of which is checked |
//! | [`etcd`] | objects as an older API server has left them |
//! | [`UserFolder`] | command lines as a user types them |
//! | [`database`] | a database that the guest postgres looks after, with somebody who writes to it |
//! | [`readme`] | the commands in the guests' READMEs |
//! | [`screens`] | what a user sees in a terminal: the pages of docs/screens |
//! | [`manifests`] | primaries of the guests that most tests use |
//! | [`router`] | leads where OpenShift's Routes say, on plain Kubernetes |
//! | [`kubelet`] | what the kubelet would say of pods where there is no node |
//! | [`eventually`] | waits for a condition with a bound and a message |
//!
//! # Guarantees
//!
//! - What a test needs and does not have is an error that names it; nothing is skipped.
//! - No wait without a bound; no fixed sleep where a condition can be asked.
//! - Every process ends with its value, also when the test panics or is killed.

mod admin;
mod admission_service;
mod chance;
pub mod database;
mod dry_run;
pub mod etcd;
mod eventually;
mod fenced;
mod host;
mod kind;
pub mod kubelet;
mod load;
pub mod manifests;
mod node_stage;
pub mod numbered_policy;
mod pod_client;
pub mod policy_stage;
mod proxy;
pub mod readme;
mod review_port;
pub mod router;
pub mod screens;
mod simulated_cluster;
pub mod stage;
mod user;

use std::sync::OnceLock;

use anyhow::{Result, anyhow};

pub use admin::{Admin, condition, name_of};
pub use admission_service::AdmissionService;
pub use chance::Chance;
pub use dry_run::{Answer, DryRun};
pub use eventually::eventually;
pub use fenced::assert_fenced;
pub use host::{Host, HostOptions};
pub use innkeeper_controlplane::{
    AuditEvent, AuditFilter, AuditLog, ControlPlane, Kubeconfig, Options,
};
pub use kind::Kind;
pub use load::{Load, LoadFigures, quantile};
pub use node_stage::NodeStage;
pub use pod_client::{Lines, PodClient};
pub use policy_stage::{PolicyStage, Printed, Replica, Requests};
pub use proxy::{Fault, Matching, ProxiedRequest, Proxy, Target, When};
pub use review_port::ReviewPort;
pub use simulated_cluster::SimulatedCluster;
pub use stage::Stage;
pub use user::UserFolder;

/// The control plane that all tests of one program share, with a controller manager;
/// started on first use. It ends with the program (its watchdog sees to that, since
/// statics are not dropped).
///
/// # Errors
/// The first use's error, to every caller.
pub fn shared() -> Result<&'static ControlPlane> {
    static PLANE: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    let options = Options { controller_manager: true, ..Options::default() };
    PLANE
        .get_or_init(|| ControlPlane::start(&options).map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|error| anyhow!("{error}"))
}

/// Writes a line to standard error, also inside a test whose output is captured.
pub(crate) fn tell(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}
