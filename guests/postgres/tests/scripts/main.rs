//! Runs the scripts with a real PostgreSQL: directories stand for the volumes, processes for the
//! containers. If root runs the tests, the scripts switch to the user postgres, as in the image;
//! otherwise they run as the user of the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests panic like tests")]

mod cluster;
mod programs;
mod server;

mod backing_up;
mod ephemeral;
mod locking;
mod preparing;
mod restoring_originals;
mod serving;
mod sharing;
