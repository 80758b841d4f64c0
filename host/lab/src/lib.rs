//! The real operator with compiled guests on a simulated cluster, on one thread and virtual time.
//!
//! - [`Lab`]: a simulator and an operator on it. The caller advances the time: [`Lab::pass`],
//!   [`Lab::until`], [`Lab::settle`].
//! - [`RunningOperator`]: only the operator, over any server.
//! - Policies review the requests of the simulated cluster in this process: `policy_requests`
//!   carries them there, and `webhook_keeper` writes the webhook configurations.
//! - [`scenario`]: test cases in folders of numbered files, in the format of KUTTL and Chainsaw,
//!   for a lab or a real cluster.
//!
//! # Guarantees
//! The same seed and the same calls give the same requests, responses and events, byte for byte.

mod api;
mod lab;
mod operator;
mod policy_requests;
pub mod scenario;
mod webhook_keeper;

pub use api::{Api, ApiFailure, Content, Resource};
pub use lab::{Lab, Setup, Timeout};
pub use operator::{Guests, LabError, Modules, RunningOperator, block_on};
