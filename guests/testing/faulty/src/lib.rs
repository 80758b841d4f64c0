//! An operator that is correct, unless the parameter `bug` of its Module chooses a bug.
//!
//! Each `Shop` becomes a ConfigMap with its settings, a Deployment, a Service and a ConfigMap for
//! each page; if its spec says so also a database, a claim, a Job and a password.
//! docs/known-bugs.md lists the bugs.

mod bug;
mod finalization;
mod job;
mod note;
mod reconcile;
mod report;
mod run;
mod settings;
mod shop;
mod storage;
mod trap;
mod workload;

pub use bug::Bug;
pub use reconcile::Guest;
pub use shop::{Shop, ShopSpec, ShopStatus};

#[cfg(target_arch = "wasm32")]
innkeeper_sdk::export!(Guest);
