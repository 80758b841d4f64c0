//! Core modules that speak waPC, the protocol of Kubewarden policies, and their imports.
//!
//! The guest exports `__guest_call` and imports nine functions of the module `wapc` from the host.
//! A call passes the operation and its request, which the guest copies by `__guest_request`, and
//! returns a response or an error. The host also defines functions of WASI preview 1, since some
//! compilers always import them; they give the guest nothing.

pub(crate) mod exchange;
pub(crate) mod imports;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod wasi;
