//! An operator that is correct, unless the parameter `bug` of its Module chooses a bug.
//!
//! Each `Shop` becomes a ConfigMap with its settings, a Deployment and a Service. docs/laws.md lists
//! the bugs, with the published bugs of which they have the shape.

mod bug;
mod reconcile;
mod shop;

pub use bug::Bug;
pub use reconcile::Guest;
pub use shop::{Shop, ShopSpec, ShopStatus};

#[cfg(target_arch = "wasm32")]
innkeeper_sdk::export!(Guest);
