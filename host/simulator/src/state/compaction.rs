//! Compaction of old versions by time, as the API server asks etcd for it.

use jiff::{SignedDuration, Timestamp};

/// When old versions expire next, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compaction {
    interval: SignedDuration,
    next: Timestamp,
    /// The version after the last tick.
    version: u64,
}

impl Compaction {
    /// Begins at a point in time and a version. The interval is positive.
    pub(crate) fn begin(interval: SignedDuration, now: Timestamp, version: u64) -> Self {
        Self { interval, next: after(now, interval), version }
    }

    /// The same from a point in time and a version on, after a restored backup.
    pub(crate) fn again(self, now: Timestamp, version: u64) -> Self {
        Self::begin(self.interval, now, version)
    }

    /// The version before which lists expire now; `None` if no tick is due. It is the version of
    /// the tick before, so that each version is kept for one to two intervals.
    pub(crate) fn due(&mut self, now: Timestamp, version: u64) -> Option<u64> {
        if now < self.next {
            return None;
        }
        self.next = after(now, self.interval);
        // The tick takes a version itself.
        Some(std::mem::replace(&mut self.version, version + 1))
    }
}

fn after(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
