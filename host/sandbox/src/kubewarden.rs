//! Policies of Kubewarden: their metadata, their requests and their responses.
//!
//! The host makes the manifest of such a policy from its metadata, turns a review request into the
//! request that Kubewarden's SDKs read, and the response into a verdict. It then checks all of
//! these like those of a guest of the contract.

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
