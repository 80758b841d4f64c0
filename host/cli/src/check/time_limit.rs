//! The longest time of a check.

/// The longest time of a check, in seconds: 30 days.
pub(super) const TIME_MAX: u64 = 30 * 24 * 3_600;
