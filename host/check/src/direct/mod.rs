//! Direct evaluation: judges laws by calls of the guest alone, without a host and a cluster.
//!
//! The [`primary generator`](crate::primary_generator) gives primaries, and the
//! [`dry_run_server`](self::dry_run_server) stores them as an API server would. An
//! [`evaluator`](self::evaluator) calls the guest with a [`picture`](self::picture) of the cluster,
//! plans with the host's own code, and applies the plan to the picture, until nothing changes. Then
//! the [workloads become ready](self::ready_workload), and the guest runs again.
//!
//! What breaks a law is a [`suspicion`](self::suspicion) only: a [`search`](self::search) makes it
//! smaller and gives it to the scenario of the law, which decides.

mod dry_run_server;
mod evaluator;
mod figures;
mod picture;
mod ready_workload;
mod search;
mod status_update;
mod suspicion;

pub use self::figures::DirectFigures;
pub(crate) use self::search::{Found, search};
