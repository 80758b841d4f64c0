//! From the sources of a guest in Rust to a component.
//!
//! - [`Toolchain`]: a Rust on this machine that compiles for wasm, or what to install.
//! - [`Package`]: the crate of a folder; [`Package::build`] is the cargo call,
//!   [`Package::artifact`] what it has made.
//! - [`componentize`]: a core module becomes a component.
//! - [`lock`]: one build at a time in a folder that several share.
//!
//! What is absent here: nothing loads or runs a component, nothing is installed or printed.

pub mod command;
pub mod componentize;
mod lock;
mod package;
mod toolchain;

pub use lock::{Lock, lock};
pub use package::Package;
pub use toolchain::{DEBIAN_PACKAGES, HOW_TO_INSTALL, Toolchain, cache_folder};

/// The target that guests are compiled for. It has no system interface at all, which is
/// what a guest may use.
pub const TARGET: &str = "wasm32-unknown-unknown";
