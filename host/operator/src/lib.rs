//! The loop: watch, observe, run, plan, apply, report.

pub mod backoff;
pub mod queue;
pub mod reads;
