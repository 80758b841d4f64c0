//! The queue: which primary is reconciled next, why, and by which worker.
//!
//! - [`request`]: a primary of a module as the queue names it, and how a reconcile ended.
//! - [`fair_queue`]: takes turns among modules, keeps what waits for a time, and guarantees that
//!   each request runs once at a time. [`module_queue`] takes turns among a module's namespaces.
//! - [`backoff`] and [`write_rate`]: how long a failed request and a busy writer wait.
//! - [`trigger`]: why a request runs.
//! - [`workers`]: the loop that takes requests from the queue and reconciles them.

pub mod backoff;
pub mod fair_queue;
pub mod module_queue;
pub mod request;
pub mod trigger;
pub mod workers;
pub mod write_rate;

pub use self::fair_queue::{Bounds, Queue};
pub use self::request::{ReconcileRequest, ReconcileResult};
