//! Container images made of files of this machine, without a container engine.
//!
//! | what | |
//! |---|---|
//! | [`Tree`] | the files of an image; programs come with the libraries that they need |
//! | [`Image`] | a tree and how to run it, as the OCI image format has it |
//! | [`Registry`] | where images are pushed to, over plain HTTP |
//! | [`Sources`] | where programs are looked for: the machine, and the unpacked packages |
//! | [`recipes`] | the images that Innkeeper and its tests need |
//!
//! # Guarantees
//!
//! - The same files give the same digest: entries are sorted, and have no times and no names of
//!   users of this machine.
//! - Nothing is run that came from elsewhere, but `ldd`, which tells a program's libraries.

mod image;
pub mod recipes;
mod registry;
mod sources;
mod tree;

pub use image::{Image, Run};
pub use registry::Registry;
pub use sources::Sources;
pub use tree::Tree;
