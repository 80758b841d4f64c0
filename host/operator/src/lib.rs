//! The loop: watch, observe, run, plan, apply, report.
//!
//! One file a noun:
//! - [`queue`], [`lane`], [`backoff`]: which key is next. [`reads`], [`record`]: which change concerns which key.
//!   Both are plain data, without a clock.
//! - [`observe`], [`apply`], [`report`]: rooms of one round; the room between them, the plan, is
//!   in `innkeeper-core`, and the run in `innkeeper-sandbox`.
//! - [`reconcile`]: one burst of rounds over one key: the short function that sees all rooms.
//! - [`granted`], [`redact`]: Secrets that a Module grants, and masking their bytes in texts.
//! - [`cause`], [`deeds`]: why a key was worked on and what that came to, for whoever reads the log.
//! - [`workers`]: keys to workers. [`supervise`]: what the driver of modules asks for.
//!   [`watchdog`]: whether that goes on.

pub mod apply;
pub mod backoff;
pub mod cause;
pub mod copies;
pub mod crds;
pub mod declared;
mod deeds;
pub mod finalize;
mod folder;
pub mod granted;
pub mod guest_log;
pub mod health;
pub mod lane;
pub mod leave;
pub mod memory;
pub mod metrics;
pub mod observe;
pub mod operator;
pub mod problem;
pub mod queue;
pub mod rate;
pub mod reads;
pub mod reconcile;
pub mod record;
pub mod redact;
pub mod rehearse;
pub mod report;
pub mod running;
pub mod shared;
pub mod sources;
pub mod supervise;
pub mod unfinished;
pub mod watchdog;
pub mod workers;
pub mod writes;

/// The namespace of the modules' components and ServiceAccounts.
pub use innkeeper_core::host_objects::MODULES_NAMESPACE;
pub use operator::{Bounds, ModulesFrom, Operator};
pub use shared::Execution;
