//! The guests imo, kuri and kabocha on a real API server: a parent and its children, each
//! reconciled by its own module; finalizers, parameters, periods and statuses.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod imo;
mod kabocha;
mod kuri;
mod stage;
