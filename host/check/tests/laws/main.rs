//! The laws against guests with known bugs, and against the guests of the repository.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod control_list;
mod given;
mod guests;
