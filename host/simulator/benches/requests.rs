//! Requests a second of the simulator, in process.
fn main() {}
