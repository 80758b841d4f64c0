//! The loop: watch, observe, run, plan, apply, report.
//!
//! One file a noun:
//! - [`queue`], [`module_queue`], [`backoff`]: which key is next. [`reads`], [`record`]: which
//!   change concerns which key. Both are plain data, without a clock.
//! - [`observe`], [`apply`], [`report`]: rooms of one round; the room between them, the plan, is
//!   in `innkeeper-core`, and the run in `innkeeper-sandbox`.
//! - [`reconcile`]: one burst of rounds over one key: the short function that sees all rooms.
//! - [`granted_secrets`], [`redact`]: Secrets that a Module grants, and masking their bytes in
//!   texts.
//! - [`trigger`], [`stats`]: why a key was worked on and what that came to, for whoever reads the
//!   log.
//! - [`workers`]: keys to workers. [`supervise`]: what the driver of modules asks for.
//!   [`watchdog`]: whether that goes on.

pub mod active_module;
pub mod apply;
pub mod backoff;
pub mod component_snapshots;
pub mod crds;
pub mod declared;
mod directory;
pub mod finalize;
pub mod granted_secrets;
pub mod guest_log;
pub mod health;
pub mod metrics;
pub mod module_queue;
pub mod observe;
pub mod operator;
pub mod preview;
pub mod primary_state;
pub mod problem;
pub mod queue;
pub mod reads;
pub mod reconcile;
pub mod record;
pub mod redact;
pub mod report;
pub mod shared;
pub mod sources;
mod stats;
pub mod supervise;
pub mod teardown;
pub mod trigger;
pub mod unfinished;
pub mod watchdog;
pub mod workers;
pub mod write_rate;
pub mod writes;

/// The namespace of the modules' components and ServiceAccounts.
pub use innkeeper_core::host_objects::MODULES_NAMESPACE;
pub use operator::{Bounds, ModulesLocation, Operator};
pub use shared::Execution;
