//! The HTTP side of requests: media types, bodies, queries and paths.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod duration;
pub(crate) mod query;
pub(crate) mod route;
