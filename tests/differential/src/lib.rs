//! The simulator is held to a real API server: random sequences of requests run against both, and
//! what is answered must be the same.

mod builtin;
pub mod case;
mod collections;
pub mod coverage;
pub mod create;
pub mod custom;
mod directives;
pub mod expect;
pub mod follow;
pub mod generate;
pub mod hooks;
mod maker;
pub mod normal;
pub mod outcome;
pub mod place;
mod query;
pub mod real;
pub mod run;
mod sentinel;
pub mod server;
pub mod shapes;
pub mod shorthand;
pub mod shrink;
pub mod subjects;
pub mod types;
mod watching;
