//! The admission server with a reviewer that needs no sandbox, on virtual time: what it answers,
//! and what clients cannot do to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod connections;
mod drain;
mod harness;
mod port;
mod requests;
mod reviews;
mod tls;
