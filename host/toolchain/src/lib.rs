//! Builds components from guests in Rust and Go.
//!
//! - [`Toolchain`]: a Rust toolchain of this machine that compiles for wasm, or what to install.
//! - [`Package`]: the crate of a folder; [`Package::build`] is the call of cargo,
//!   [`Package::artifact`] finds its result.
//! - [`Go`]: a Go of this machine, and its call that compiles a guest.
//! - [`componentize`]: makes a component from a core module.
//! - [`lock`]: allows one build at a time in a shared folder; [`bound_builds`] keeps the user's
//!   shared folders small, [`create_private_folder`] makes a folder of the user's cache.
//!
//! This crate loads and runs no component, installs nothing and prints nothing.

mod build_folders;
pub mod command;
pub mod componentize;
mod go;
mod lock;
mod package;
mod private_folder;
mod toolchain;

pub use build_folders::{BUILDS_BYTES_MAX, bound_builds};
pub use go::Go;
pub use lock::{Lock, lock};
pub use package::Package;
pub use private_folder::create as create_private_folder;
pub use toolchain::{DEBIAN_PACKAGES, HOW_TO_INSTALL, Toolchain, cache_folder};

/// The target of guests. It has no system interface, and guests may use none.
pub const TARGET: &str = "wasm32-unknown-unknown";
