//! kuri: each `Kuri` becomes a Job, which is deleted with its pods before the Kuri is removed.
//!
//! The Job runs once, or again after each period. The Module's parameter `operations` selects what
//! the guest does.

mod clean_up;
mod job;
mod parameters;
mod period;
mod periodic;
mod primary;
mod reconcile;
mod recorded;

pub use parameters::{Operation, Parameters};
pub use primary::{Kuri, KuriPhase, KuriResult, KuriRun, KuriSpec, KuriStatus};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
