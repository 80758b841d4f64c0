//! The simulator is held to a real API server: random sequences of requests run against both, and
//! what is answered must be the same.

pub mod builtin;
pub mod case;
mod collections;
pub mod coverage;
mod directives;
pub mod expect;
pub mod follow;
pub mod generate;
pub mod hooks;
pub mod normal;
pub mod real;
pub mod run;
pub mod sentinel;
pub mod shapes;
pub mod shrink;
pub mod told;
pub mod types;
mod watching;
