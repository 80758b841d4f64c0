//! The operator: watches primaries and what their guests read, reconciles, and manages modules.
//!
//! - [`watch`]: which event wakes which reconcile request.
//! - [`queue`]: which request is next, and the workers.
//! - [`reconcile`]: snapshot, observe, run, plan, apply, report. [`evaluate`] is its middle, from a
//!   snapshot to a plan; [`preview`] uses it as well.
//! - [`supervise`], [`sources`], [`teardown`], [`crds`] and others: the life of modules, as
//!   `innkeeper-modules` decides it.
//! - [`granted_secrets`], [`redact`]: Secrets that a Module grants, and masking their values.
//! - [`operator`]: starts and stops all of it. [`shared`]: the state that it shares.

pub mod active_module;
pub mod component_snapshots;
pub mod crds;
pub mod declared;
mod directory;
pub mod evaluate;
pub mod execution;
pub mod granted_secrets;
pub mod guest_log;
pub mod health;
pub mod metrics;
pub mod operator;
pub mod preview;
pub mod queue;
pub mod reconcile;
pub mod redact;
pub mod shared;
pub mod sources;
pub mod supervise;
pub mod teardown;
pub mod watch;
pub mod watchdog;

pub use execution::Execution;
/// The namespace of the modules' components and ServiceAccounts.
pub use innkeeper_core::host_objects::MODULES_NAMESPACE;
pub use operator::{Bounds, ModulesLocation, Operator};
