//! kuri: each `Kuri` becomes a Job, which is cleaned up with its pods before the Kuri goes.
//!
//! What it does is the Module's to say, by the parameter `operations`.

mod parameters;
mod primary;
mod reconcile;

pub use parameters::{Operation, Parameters};
pub use primary::{Kuri, KuriPhase, KuriSpec, KuriStatus};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
