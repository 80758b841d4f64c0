//! imo: each `Imo` becomes a Deployment of nginx pods.

mod primary;
mod reconcile;

pub use primary::{Imo, ImoPhase, ImoSpec, ImoStatus};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
