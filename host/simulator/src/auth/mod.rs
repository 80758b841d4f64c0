//! Authentication and authorization: users, tokens, impersonation, RBAC.

pub(crate) mod escalation;
pub(crate) mod impersonated_user;
pub(crate) mod impersonation;
pub(crate) mod rbac;
pub(crate) mod token;
pub(crate) mod user;
