//! The operator on the simulator, in virtual time: what a user sees of it is objects, conditions,
//! Events, metrics and the requests that it sends.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::panic, reason = "a test may fail by it")]

mod apply;
mod conflicts;
mod drift;
mod finalizer;
mod overlap;
mod policies;
mod preview;
mod reconcile;
mod refused;
mod restart;
mod revision_history;
mod rollback;
mod run_result;
mod schedule;
mod selection;
mod support;
mod teardown;
mod updates;
mod value_sources;
