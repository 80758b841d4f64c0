//! A scripted API server: enough of one for the loop to run whole, on one thread and virtual
//! time, with every request written down.
//!
//! It is no model of Kubernetes (that is the simulator's task): it stores what is applied,
//! keeps one entry of `managedFields` for each manager, tells watches, and fails when its
//! script says so. It shares no code with the host's decisions.

mod server;
mod store;

pub use server::{Faults, Scripted};
