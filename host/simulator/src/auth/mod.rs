//! Who a user is, and what he may do.

pub(crate) mod escalation;
pub(crate) mod impersonated_user;
pub(crate) mod impersonation;
pub(crate) mod rbac;
pub(crate) mod token;
pub(crate) mod user;
