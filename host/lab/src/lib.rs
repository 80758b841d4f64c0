//! The real operator with compiled guests on a simulated cluster, on one thread and virtual time.
//!
//! - [`Lab`]: a simulator and an operator on it. Time passes when somebody lets it: [`Lab::pass`],
//!   [`Lab::until`], [`Lab::settle`].
//! - [`RunningOperator`]: only the operator, over whatever answers its requests.
//! - [`scenario`]: folders of numbered files, as KUTTL and Chainsaw have them, played in a lab or
//!   on a real cluster.
//!
//! # Guarantees
//! The same seed and the same calls give the same requests, answers and events, byte for byte.

mod api;
mod lab;
mod operator;
pub mod scenario;

pub use api::{Api, ApiFailure, Content, Resource};
pub use lab::{Lab, Setup, Timeout};
pub use operator::{Guests, LabError, Modules, RunningOperator, block_on};
