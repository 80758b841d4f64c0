//! The thin layer between HTTP and the core.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod service;
