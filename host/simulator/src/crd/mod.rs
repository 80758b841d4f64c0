//! Kinds that users define.

pub(crate) mod cel;
pub(crate) mod default;
pub(crate) mod definition;
mod deletion;
pub(crate) mod prune;
pub(crate) mod registration;
pub(crate) mod validate;
