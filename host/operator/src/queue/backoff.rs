//! How long to wait before another try.

use std::time::Duration;

/// Exponential backoff: the delay doubles up to a maximum, with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The longest delay, before jitter.
    pub max: Duration,
    /// The fraction of a delay, 0 to 1, by which jitter makes it shorter or longer.
    pub jitter: f64,
}

impl Default for Backoff {
    /// 1 s doubling to 5 min, varied by a tenth.
    fn default() -> Self {
        Self { first: Duration::from_secs(1), max: Duration::from_mins(5), jitter: 0.1 }
    }
}

impl Backoff {
    /// The delay after this many failures in a row, at least 1. `random` in 0..1 gives the jitter.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let delay = self.first.saturating_mul(1 << doublings).min(self.max);
        delay.mul_f64(1.0 + self.jitter * (random.clamp(0.0, 1.0) * 2.0 - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_its_maximum() {
        let backoff = Backoff::default();
        let seconds = |failures| backoff.delay(failures, 0.5).as_secs();
        assert_eq!([1, 2, 3, 9, 10, 1_000_000].map(seconds), [1, 2, 4, 256, 300, 300]);
    }

    #[test]
    fn jitter_varies_the_delay_by_a_tenth() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(1, 0.0), Duration::from_millis(900));
        assert_eq!(backoff.delay(1, 1.0), Duration::from_millis(1_100));
    }
}
