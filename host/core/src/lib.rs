//! What should be written, from what is.
//!
//! Everything here is a function of its arguments: nothing is async, nothing does I/O,
//! nothing reads a clock, nothing is random, and no order comes from a hash. So the same
//! code plans in the running host, in `innkeeper render`, in tests and in replays.
//!
//! One noun a file:

pub mod manager;
pub mod object;

pub use manager::Manager;
pub use object::{Key, Object};
