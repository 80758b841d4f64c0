//! How many writes a module may make: so many a second in the long run, and more at once now and
//! then.
//!
//! The generic cell rate algorithm (ITU-T I.371): one point in time says it all, and no timer runs.
//! A module is not stopped in the middle of its work, which would hold a worker and leave a primary
//! half done: what it writes beyond its rate is made good before its next key has its turn.

use std::num::NonZeroU32;
use std::time::Duration;

/// So many seconds' worth of writes may be made at once after a pause: all objects of a thousand
/// primaries that come at once are made without a wait.
pub const BURST: Duration = Duration::from_secs(20);

/// The same for all namespaces of a module together: what is left of it when one has used up its
/// [`BURST`] is for the others.
pub const MODULE_BURST: Duration = Duration::from_secs(30);

/// The writes of one module, or of one namespace of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Between two writes in the long run; none is counted if it is zero.
    interval: Duration,
    /// When all that was written has been made good.
    paid: Duration,
}

impl Rate {
    /// From now on so many writes a second. What was written before counts.
    pub fn set(&mut self, per_second: NonZeroU32) {
        self.interval = Duration::from_secs(1) / per_second.get();
    }

    /// A write was made.
    pub fn spend(&mut self, now: Duration) {
        self.paid = self.paid.max(now).saturating_add(self.interval);
    }

    /// From when on another write may be made.
    pub fn ready_at(&self) -> Duration {
        self.ready_after(BURST)
    }

    /// The same with another burst than [`BURST`].
    pub fn ready_after(&self, burst: Duration) -> Duration {
        self.paid.saturating_sub(burst)
    }

    /// Whether nothing that was written counts any more.
    pub fn is_paid(&self, now: Duration) -> bool {
        self.paid <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32) -> Rate {
        let mut rate = Rate::default();
        rate.set(NonZeroU32::new(per_second).unwrap());
        rate
    }

    #[test]
    fn a_burst_is_free_and_what_goes_beyond_it_is_made_good() {
        let mut rate = rate(10);
        let now = Duration::from_mins(1);
        for _ in 0..200 {
            assert!(rate.ready_at() <= now);
            rate.spend(now);
        }
        assert_eq!(rate.ready_at(), now, "20 s of 10 a second");
        for _ in 0..10 {
            rate.spend(now);
        }
        assert_eq!(rate.ready_at(), now + Duration::from_secs(1));
    }

    #[test]
    fn in_the_long_run_it_is_the_rate() {
        let mut rate = rate(5);
        let (mut now, mut writes) = (Duration::ZERO, 0);
        while now < Duration::from_mins(10) {
            if rate.ready_at() <= now {
                rate.spend(now);
                writes += 1;
            } else {
                now = rate.ready_at();
            }
        }
        assert_eq!(writes, 5 * 600 + 5 * 20);
    }
}
