//! The loop: watch, observe, run, plan, apply, report.
//!
//! One file a noun:
//! - [`queue`], [`module_queue`], [`backoff`]: which key is next. [`reads`], [`record`]: which
//!   change concerns which key. Both are plain data, without a clock.
//! - [`observe`], [`apply`], [`report`]: rooms of one round; the room between them, the plan, is
//!   in `innkeeper-core`, and the run in `innkeeper-sandbox`.
//! - [`reconcile`]: one burst of rounds over one key: the short function that sees all rooms.
//! - [`redact`]: masking the bytes of granted Secrets in texts.
//! - [`trigger`], [`stats`]: why a key was worked on and what that came to, for whoever reads the
//!   log.
//! - [`workers`]: keys to workers. [`modules`]: modules from a source to an active revision.

pub mod apply;
pub mod backoff;
pub mod finalize;
pub mod guest_log;
pub mod metrics;
pub mod module_queue;
pub mod modules;
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
mod stats;
pub mod teardown;
pub mod trigger;
pub mod unfinished;
pub mod workers;
pub mod write_rate;
pub mod writes;

/// The namespace of the modules' components and ServiceAccounts.
pub use innkeeper_core::host_objects::MODULES_NAMESPACE;
pub use operator::{Bounds, ModulesLocation, Operator};
pub use shared::Execution;
