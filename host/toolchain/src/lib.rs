//! Builds components from guests in Rust.
//!
//! - [`Toolchain`]: a Rust toolchain of this machine that compiles for wasm, or what to install.
//! - [`Package`]: the crate of a folder; [`Package::build`] is the call of cargo,
//!   [`Package::artifact`] finds its result.
//! - [`componentize`]: makes a component from a core module.
//! - [`lock`]: allows one build at a time in a shared folder; [`bound_builds`] keeps the user's
//!   shared folders small.
//!
//! This crate loads and runs no component, installs nothing and prints nothing.

mod build_folders;
pub mod command;
pub mod componentize;
mod lock;
mod package;
mod private_folder;
mod toolchain;

pub use build_folders::{BUILDS_BYTES_MAX, bound_builds};
pub use lock::{Lock, lock};
pub use package::Package;
pub use toolchain::{DEBIAN_PACKAGES, HOW_TO_INSTALL, Toolchain, cache_folder};

/// The target of guests. It has no system interface, and guests may use none.
pub const TARGET: &str = "wasm32-unknown-unknown";
