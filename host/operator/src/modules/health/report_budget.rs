//! How often the health of a module is reported: a primary that fails and recovers again and again
//! must not cause a write of the Module's status each time.

use std::time::Duration;

/// So many changes in a row are reported at once.
const BURST: u32 = 5;

/// After those, one change in this time.
pub(super) const PERIOD: Duration = Duration::from_secs(15);

/// The changes that may be reported of one module.
#[derive(Debug, Default)]
pub(super) struct ReportBudget {
    /// The time at which the changes so far are paid for.
    paid_until: Duration,
}

impl ReportBudget {
    /// Counts a change that is reported now.
    ///
    /// # Errors
    /// If it is too early: from when on it may be reported.
    pub(super) fn spend(&mut self, now: Duration) -> Result<(), Duration> {
        let ready = self.paid_until.saturating_sub(PERIOD * (BURST - 1));
        if ready > now {
            return Err(ready);
        }
        self.paid_until = self.paid_until.max(now) + PERIOD;
        Ok(())
    }
}

#[cfg(test)]
impl ReportBudget {
    /// When all changes so far are paid for.
    pub(super) fn paid_until(&self) -> Duration {
        self.paid_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When changes are reported, in seconds, of those that happen each second.
    fn reported(budget: &mut ReportBudget, seconds: std::ops::Range<u64>) -> Vec<u64> {
        seconds.filter(|second| budget.spend(Duration::from_secs(*second)).is_ok()).collect()
    }

    #[test]
    fn five_changes_are_reported_at_once_and_then_one_each_15_seconds() {
        let mut budget = ReportBudget::default();
        assert_eq!(reported(&mut budget, 100..160), [100, 101, 102, 103, 104, 115, 130, 145]);
        // After a quiet time, five again.
        assert_eq!(reported(&mut budget, 300..320), [300, 301, 302, 303, 304, 315]);
    }

    #[test]
    fn early_change_is_refused_with_the_time_at_which_it_may_be_reported() {
        let mut budget = ReportBudget::default();
        let now = Duration::from_secs(100);
        for _ in 0..BURST {
            assert_eq!(budget.spend(now), Ok(()));
        }
        let due = budget.spend(now).unwrap_err();
        assert_eq!(due, now + PERIOD);
        assert_eq!(budget.spend(due), Ok(()));
    }
}
