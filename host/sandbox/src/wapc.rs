//! Core modules that speak waPC, the protocol of Kubewarden policies, and their imports.
//!
//! The guest exports `__guest_call`, and the host imports nine functions of the module `wapc`. A
//! call passes two byte strings in (the operation and its request), which the guest asks for by
//! `__guest_request`, and one out. Functions of WASI preview 1 do nothing, so that compilers that
//! always import them can be used.

pub(crate) mod exchange;
pub(crate) mod imports;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod wasi;
