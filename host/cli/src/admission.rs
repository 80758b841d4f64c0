//! Admission of `innkeeper run`: every replica follows the policies and reviews the requests of the
//! API server over HTTPS, whether it is the leader or not.

mod arguments;
mod health;
mod reviewing;
mod server;

pub(crate) use arguments::AdmissionArguments;
pub(crate) use health::Health;
pub(crate) use server::Admission;
