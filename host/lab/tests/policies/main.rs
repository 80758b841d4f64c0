//! Policies of Modules in a lab: the simulated API server asks them, and scenarios name what they
//! must deny.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::panic, reason = "a test may fail by it")]

mod hostile;
mod reviews;
mod scenarios;
mod stage;
