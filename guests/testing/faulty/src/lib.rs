//! An operator that is correct, unless the parameter `bug` of its Module chooses a bug.
//!
//! Each `Shop` becomes a ConfigMap with its settings, a Deployment, a Service and a ConfigMap for
//! each page. docs/laws.md lists the bugs.

mod bug;
mod reconcile;
mod shop;

pub use bug::Bug;
pub use reconcile::Guest;
pub use shop::{Shop, ShopSpec, ShopStatus};

#[cfg(target_arch = "wasm32")]
innkeeper_sdk::export!(Guest);
