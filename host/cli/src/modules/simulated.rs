//! The commands against a simulated API server, in which the test writes what a host would write.

mod approve;
mod rights;
mod rollback;
mod server;
