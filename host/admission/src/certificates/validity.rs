//! How long certificates are valid.

use serde::{Deserialize, Serialize};

/// How long before it was made a certificate is valid, for clocks that are behind, in seconds.
pub(super) const CLOCK_DIFFERENCE: i64 = 3_600;

/// How long certificates are valid, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of an authority.
    pub authority: i64,
    /// Of a certificate that the replicas serve.
    pub serving: i64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        const DAY: i64 = 24 * 3_600;
        Self { authority: 365 * DAY, serving: 90 * DAY }
    }
}

impl Lifetimes {
    /// Lifetimes of this many days for both. Short ones show a rotation soon.
    pub fn of_days(days: u32) -> Self {
        let seconds = i64::from(days) * 24 * 3_600;
        Self { authority: seconds, serving: seconds }
    }
}

/// When a certificate was made and when it ends, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// Its beginning, apart from the tolerance for clocks that are behind.
    pub made: i64,
    /// Its end.
    pub ends: i64,
}
