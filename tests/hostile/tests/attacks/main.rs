//! Hostile guests against the real operator on a simulated cluster, one file per class of attack.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod baseline;
mod definitions;
mod discovery;
mod fairness;
mod old_names;
mod outer_look;
mod output;
mod ownership;
mod schemas;
mod second_look;
mod secrets;
mod third_look;
mod versions;
mod write_rate;
