//! The scripts at work with a real PostgreSQL: folders stand for the volumes, processes for the
//! containers. As root they run as the user postgres, as in the image; else as whoever runs
//! the tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot go on in a test's helper panics"
)]

mod cluster;
mod programs;
mod server;

mod backing_up;
mod locking;
mod preparing;
mod serving;
