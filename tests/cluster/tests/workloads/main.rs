//! The simulator's controllers compared with the real ones: the same objects, the same messages
//! about their Pods, and the same outcomes. The scenario makes the volumes of claims: the real
//! controllers make none.
//!
//! The control plane of the tests has no nodes, so the scenario writes on both sides what a
//! kubelet would; the simulator's own is turned off.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod claims;
mod daemons;
mod lines;
mod pods;
mod sets;
mod world;
