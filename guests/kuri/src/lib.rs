//! kuri: each `Kuri` becomes a Job, which is deleted with its pods before the Kuri is removed.
//!
//! The Job runs once, or again after each period. The Module's parameter `operations` selects what
//! the guest does.

mod clean_up;
mod job;
mod parameters;
mod period;
mod periodic;
mod previous_status;
mod primary;
mod progress;
mod reconcile;
mod status;

pub use parameters::{Operation, Parameters};
pub use primary::{Kuri, KuriSpec};
pub use reconcile::Guest;
pub use status::{KuriPhase, KuriResult, KuriRun, KuriStatus};

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
