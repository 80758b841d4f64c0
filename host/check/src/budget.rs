//! How much a check does.

use std::time::Duration;

use crate::law::Law;

/// How much is checked.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The seed of everything random.
    pub seed: u64,
    /// The laws.
    pub laws: Vec<Law>,
    /// The time for all laws together; each gets an equal part, and what others leave.
    pub time: Duration,
    /// The most cases of each law.
    pub cases_max: usize,
    /// The most primaries of direct evaluation, which calls the guest without a host; 0 for none.
    pub primaries_max: usize,
    /// The time to make one failing scenario smaller.
    pub shrink_time: Duration,
}
