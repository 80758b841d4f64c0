//! Examples of Metacontroller's repository as guests: see README.md.
//!
//! Each guest is a component of its own, an example target of this package. This library has what
//! the guests of Vitess share, and the guests as modules, for the tests.

// The guests name the library by its name, in it and in their components.
extern crate self as metacontroller_examples;

// A component has one guest.
#[cfg(not(target_arch = "wasm32"))]
mod guests;
#[path = "../vitess/mod.rs"]
pub mod vitess;

#[cfg(not(target_arch = "wasm32"))]
pub use guests::*;
