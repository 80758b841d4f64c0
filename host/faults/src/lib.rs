//! A layer between a client and a Kubernetes API server that injects faults by a plan.
//!
//! A [`FaultPlan`] says which requests are affected and how: the server refuses a request, its
//! answer is lost, the client's process ends between a write and its answer, a watch lags behind,
//! another client writes in between. [`FaultInjector`] carries the plan out. Each client process
//! has a [`Connection`] of its own, a tower Service, which a crash of that process closes.
//!
//! # Guarantees
//! The same plan and the same requests in the same order give the same faults: no clock but
//! tokio's, which a test pauses, and no randomness.

mod body;
mod bounded_document;
mod connection;
mod crash_signal;
mod fault;
mod injector;
mod plan;
mod plan_error;
mod plan_file;
mod read_log;
mod request_info;
mod restart;
mod served;
mod sieve;
mod watch_body;

pub use body::{AnswerBody, BoxError};
pub use bounded_document::{ValueBudget, bounded_json, bounded_yaml};
pub use connection::Connection;
pub use crash_signal::CrashSignal;
pub use fault::{ConcurrentWrite, CrashPoint, Fault, Refusal, WatchFault};
pub use injector::{FaultInjector, LogEntry, RequestRecord};
pub use plan::{FaultPlan, PlannedFault, RequestSelector};
pub use plan_error::PlanError;
pub use plan_file::{PLAN_BYTES_MAX, PlanFile};
pub use request_info::{RequestInfo, Verb};
pub use restart::Restart;
pub use served::{ServedEvents, ServedFaults};
pub use sieve::{
    Action, ActionKind, Condition, Expression, Observer, PausePoint, ResourceKey, SievePlan,
    TriggerDefinition,
};
