//! The laws against guests with known bugs, and against the guests of the repository.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "a failed test shows its seed and what it found")]

mod control_list;
mod direct;
mod guest_fixture;
mod guests;
mod incidents;
mod known_bugs;
