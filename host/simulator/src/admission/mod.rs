//! Admission: policies, webhooks and the built-in plugins that run before an object is stored.

pub(crate) mod admission_review;
pub(crate) mod attributes;
pub(crate) mod match_conditions;
pub(crate) mod namespace_lifecycle;
pub(crate) mod policies;
pub(crate) mod policy_scope;
pub(crate) mod pvc_resize;
pub(crate) mod service_account;
pub(crate) mod unexpected_response;
pub(crate) mod webhook;
pub(crate) mod webhooks;
