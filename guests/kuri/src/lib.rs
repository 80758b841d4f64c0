//! kuri: each `Kuri` becomes a Job, which is deleted with its pods before the Kuri is removed.
//!
//! The Module's parameter `operations` selects what the guest does.

mod parameters;
mod primary;
mod reconcile;

pub use parameters::{Operation, Parameters};
pub use primary::{Kuri, KuriPhase, KuriSpec, KuriStatus};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
