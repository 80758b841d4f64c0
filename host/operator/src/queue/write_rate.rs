//! The write rate of a module: writes for each second in the long run, and a burst.
//!
//! The generic cell rate algorithm (ITU-T I.371): its state is one point in time, without a timer.
//! Each turn of a request reserves [`turn_writes`], so that turns at the same time exceed a burst
//! by one turn at most. At its end a turn releases the writes that it has not made.

use std::num::NonZeroU32;
use std::time::Duration;

/// A burst is the writes of this time. It creates all objects of a thousand primaries that appear
/// at once without a wait.
pub const BURST: Duration = Duration::from_secs(20);

/// The burst of all namespaces of a module together. When one namespace has used up its [`BURST`],
/// the rest is for the others.
pub const MODULE_BURST: Duration = Duration::from_secs(30);

/// The writes that a turn may make even if the bursts are used up: those of half a second, rounded
/// down, and at least one.
pub fn turn_writes(per_second: NonZeroU32) -> u32 {
    (per_second.get() / 2).max(1)
}

/// The writes of one module, or of one namespace of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRateLimiter {
    /// The time between two writes in the long run. Zero: writes are not counted.
    interval: Duration,
    /// The time at which the writes so far are paid for.
    paid_until: Duration,
    /// The writes that running turns have reserved.
    reserved: u32,
}

impl WriteRateLimiter {
    /// Sets the rate. Writes before the call count.
    pub fn set(&mut self, per_second: NonZeroU32) {
        self.interval = Duration::from_secs(1) / per_second.get();
    }

    /// Counts a write.
    pub fn spend(&mut self, now: Duration) {
        self.paid_until = self.paid_until.max(now).saturating_add(self.interval);
    }

    /// Reserves writes.
    pub fn reserve(&mut self, writes: u32) {
        self.reserved = self.reserved.saturating_add(writes);
    }

    /// Releases reserved writes that were made, or that will not be made.
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
