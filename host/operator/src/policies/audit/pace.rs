//! When the next review may run: the audit is bounded in reviews and in time, so that policies that
//! are slow or review much delay neither requests nor each other.

use std::time::Duration;

use tokio::time::Instant;

/// The time between two reviews of the audit: at most 200 in a second.
const INTERVAL: Duration = Duration::from_millis(5);

/// The time between two reviews with one policy: at most 100 in a second.
const INTERVAL_OF_POLICY: Duration = Duration::from_millis(10);

/// How many times as long as a review took the policy waits before its next: it takes at most a
/// tenth of one core.
const REST_OF_POLICY: u32 = 9;

/// When the next review may run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    next: Option<Instant>,
}

impl Pace {
    /// The time until the next review; zero if it may run now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// Counts a review of the whole audit, which takes at most half of one core.
    pub(super) fn spend(&mut self, now: Instant, took: Duration) {
        self.next = Some(now + took.max(INTERVAL));
    }

    /// Counts a review with one policy.
    pub(super) fn spend_of_policy(&mut self, now: Instant, took: Duration) {
        self.next = Some(now + (took * REST_OF_POLICY).max(INTERVAL_OF_POLICY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn policy_rests_nine_times_as_long_as_its_review_took() {
        let now = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.wait(now), Duration::ZERO);
        pace.spend_of_policy(now, Duration::from_micros(100));
        assert_eq!(pace.wait(now), INTERVAL_OF_POLICY);
        pace.spend_of_policy(now, Duration::from_secs(10));
        assert_eq!(pace.wait(now), Duration::from_secs(90));
        pace.spend(now, Duration::from_secs(10));
        assert_eq!(pace.wait(now), Duration::from_secs(10));
        assert_eq!(pace.wait(now + Duration::from_secs(11)), Duration::ZERO);
    }
}
