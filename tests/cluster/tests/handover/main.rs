//! From the original operators, and from earlier versions, to the guests: definitions and objects
//! as the originals left them, an original that still runs for a while, and the commands of each
//! guest's README.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod definitions;
mod family;
mod maintpage;
mod original;
mod podroute;
mod postgres;
mod takeover;
mod upgrade;
