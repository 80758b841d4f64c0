//! Measures the admission server of the program `innkeeper` under load: the host runs in a process
//! of its own, on a simulated cluster in another one, and this process plays the API server.
//!
//! - [`program`]: the processes; [`api`]: a client of the simulated cluster; [`setup`]: what the
//!   cluster has.
//! - [`review`]: the requests; [`pool`]: connections over TLS; [`load`]: users who send requests.
//! - [`usage`]: CPU and memory of a process; [`sample`]: times.
//! - [`bench`](mod@bench): the measurements, as `cargo xtask bench --admission` prints them.

pub mod api;
pub mod bench;
pub mod eventually;
pub mod load;
pub mod pool;
pub mod program;
pub mod review;
pub mod sample;
pub mod setup;
pub mod usage;
