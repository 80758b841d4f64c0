//! The operator: watches primaries and what their guests read, reconciles, and manages modules.
//!
//! - [`watch`]: which event wakes which reconcile request.
//! - [`queue`]: which request is next, and the workers.
//! - [`reconcile`]: snapshot, observe, run, plan, apply, report. [`evaluate`] is its middle, from a
//!   snapshot to a plan; [`preview`] uses it as well.
//! - [`cluster_reads`]: the reads of a guest, in a reconcile and in a review.
//! - [`modules`]: modules, from a source to an active revision, as `innkeeper-modules` decides it.
//! - [`policies`]: guests that review admission requests, on each replica.
//! - [`guest_calls`]: the calls of guests, each with a permit of the sandbox.
//! - [`redact`]: masks the values of granted Secrets.
//! - [`operator`]: starts and stops all of it. [`shared`]: the state that it shares.

pub mod cluster_reads;
pub mod evaluate;
pub mod execution;
pub mod guest_calls;
pub mod guest_log;
pub mod host_facts;
pub mod metrics;
pub mod modules;
pub mod operator;
pub mod policies;
pub mod preview;
pub mod queue;
pub mod reconcile;
pub mod redact;
pub mod shared;
pub mod watch;

pub use execution::Execution;
pub use host_facts::{HostFacts, HostNamespaces, HostPod};
/// The namespace of the modules' components and ServiceAccounts.
pub use innkeeper_core::host_objects::MODULES_NAMESPACE;
pub use operator::{Bounds, ModulesLocation, Operator, ReportedModule};
pub use policies::{
    AdmissionEndpoint, AdmissionSettings, PolicyFollower, PolicyReviewer, ReplicaName,
    ReplicaPolicies, ShownCertificate, read_certificates,
};
