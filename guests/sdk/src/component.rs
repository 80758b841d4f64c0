//! Binds the contract's functions to the SDK's types. For [`export!`](crate::export) only.

pub mod bindings;
mod host;
pub mod policy;
pub mod reconciler;
