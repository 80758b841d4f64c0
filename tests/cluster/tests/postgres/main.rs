//! The guest postgres on a real API server: the original's manifest, the Secret that comes and
//! goes, the volumes that outlive their PostgreSQL, and the original's objects.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod objects;
mod secret;
mod stage;
mod storage;
mod volumes;
