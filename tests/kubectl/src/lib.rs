//! kubectl against the simulator and against a real API server: the same commands must print the
//! same.

pub mod commands;
pub mod normal;
pub mod side;
pub mod words;
