//! Policies of Kubewarden: what their metadata says, what they are given, and what they answer.
//!
//! The manifest of such a policy is made from its metadata, a review request becomes the request
//! that Kubewarden's SDKs know, and the answer becomes a verdict. All that the host checks of a
//! guest of the contract it checks afterwards, as for every guest.

pub(crate) mod field_mask;
pub(crate) mod field_selector;
pub(crate) mod host_calls;
pub(crate) mod kinds;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod operations;
pub(crate) mod policy;
pub(crate) mod request;
pub(crate) mod response;
