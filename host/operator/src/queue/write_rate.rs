//! How many writes a module may make: so many a second in the long run, and more at once now and
//! then.
//!
//! The generic cell rate algorithm (ITU-T I.371): one point in time says it all, and no timer runs.
//! Each turn of a key reserves [`turn_writes`]: so runs at the same time exceed a burst by one turn
//! at most. What a turn does not write is released when it ends.

use std::num::NonZeroU32;
use std::time::Duration;

/// So many seconds' worth of writes may be made at once after a pause: all objects of a thousand
/// primaries that come at once are made without a wait.
pub const BURST: Duration = Duration::from_secs(20);

/// The same for all namespaces of a module together: what is left of it when one has used up its
/// [`BURST`] is for the others.
pub const MODULE_BURST: Duration = Duration::from_secs(30);

/// So many writes a turn may make whatever is left of the bursts: half a second's worth, rounded
/// down, and one at least.
pub fn turn_writes(per_second: NonZeroU32) -> u32 {
    (per_second.get() / 2).max(1)
}

/// The writes of one module, or of one namespace of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRateLimiter {
    /// Between two writes in the long run; none is counted if it is zero.
    interval: Duration,
    /// When all that was written has been made good.
    paid_until: Duration,
    /// Writes that turns under way may still make.
    reserved: u32,
}

impl WriteRateLimiter {
    /// From now on so many writes a second. What was written before counts.
    pub fn set(&mut self, per_second: NonZeroU32) {
        self.interval = Duration::from_secs(1) / per_second.get();
    }

    /// A write was made.
    pub fn spend(&mut self, now: Duration) {
        self.paid_until = self.paid_until.max(now).saturating_add(self.interval);
    }

    /// So many writes may be made soon.
    pub fn reserve(&mut self, writes: u32) {
        self.reserved = self.reserved.saturating_add(writes);
    }

    /// So many reserved writes were made, or will not be made.
    pub fn release(&mut self, writes: u32) {
        self.reserved = self.reserved.saturating_sub(writes);
    }

    /// From when on another write may be made with this burst; not after `now` if it may be made
    /// now.
    pub fn ready_after(&self, burst: Duration, now: Duration) -> Duration {
        let reserved = self.interval.saturating_mul(self.reserved);
        self.paid_until.max(now).saturating_add(reserved).saturating_sub(burst)
    }

    /// Whether nothing that was written or is reserved counts any more.
    pub fn is_paid(&self, now: Duration) -> bool {
        self.paid_until <= now && self.reserved == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32) -> WriteRateLimiter {
        let mut rate = WriteRateLimiter::default();
        rate.set(NonZeroU32::new(per_second).unwrap());
        rate
    }

    #[test]
    fn a_burst_is_free_and_writes_beyond_it_are_delayed() {
        let mut rate = rate(10);
        let now = Duration::from_mins(1);
        for _ in 0..200 {
            assert!(rate.ready_after(BURST, now) <= now);
            rate.spend(now);
        }
        assert_eq!(rate.ready_after(BURST, now), now, "20 s of 10 a second");
        for _ in 0..10 {
            rate.spend(now);
        }
        assert_eq!(rate.ready_after(BURST, now), now + Duration::from_secs(1));
    }

    #[test]
    fn reserved_writes_count_until_they_are_released() {
        let mut rate = rate(10);
        let now = Duration::from_mins(1);
        rate.reserve(205);
        assert_eq!(rate.ready_after(BURST, now), now + Duration::from_millis(500));
        assert!(!rate.is_paid(now));
        rate.release(205);
        assert!(rate.ready_after(BURST, now) <= now && rate.is_paid(now));
    }

    #[test]
    fn a_turn_has_half_a_second_of_writes_and_one_at_least() {
        let of = |per_second| turn_writes(NonZeroU32::new(per_second).unwrap());
        assert_eq!([1, 3, 5, 200].map(of), [1, 1, 2, 100]);
    }

    #[test]
    fn writes_over_time_match_the_rate() {
        let mut rate = rate(5);
        let (mut now, mut writes) = (Duration::ZERO, 0);
        while now < Duration::from_mins(10) {
            let ready = rate.ready_after(BURST, now);
            if ready <= now {
                rate.spend(now);
                writes += 1;
            } else {
                now = ready;
            }
        }
        assert_eq!(writes, 5 * 600 + 5 * 20);
    }
}
