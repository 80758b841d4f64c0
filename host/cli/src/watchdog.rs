//! Detects an operator that hangs, so that this host releases its Lease and exits.

use std::time::Duration;

use crate::serve::HealthSource;

/// How often the watchdog checks an operator that works.
const PERIOD: Duration = Duration::from_secs(5);

/// How often it checks one that may hang.
const HANGING_PERIOD: Duration = Duration::from_secs(1);

/// The number of consecutive checks that must fail: after a pause of the whole process, the
/// operator needs a moment to continue.
const TIMES: u32 = 5;

/// Waits until the operator hangs; returns in what.
pub(crate) async fn hangs(source: &impl HealthSource) -> String {
    let mut times = 0;
    loop {
        tokio::time::sleep(if times == 0 { PERIOD } else { HANGING_PERIOD }).await;
        match source.stalled() {
            None => times = 0,
            Some(what) => {
                times += 1;
                if times == TIMES {
                    return what;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Hangs in the checks, counted from 1, for which the function returns true.
    #[derive(Clone)]
    struct Fake(Arc<AtomicU32>, fn(u32) -> bool);

    impl HealthSource for Fake {
        fn unready(&self) -> Option<String> {
            None
        }

        fn metrics(&self) -> String {
            String::new()
        }

        fn stalled(&self) -> Option<String> {
            let time = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            (self.1)(time).then(|| format!("it hangs at {time}"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn operator_is_reported_when_it_hangs_for_five_checks_in_a_row() {
        let fake = Fake(Arc::default(), |time| !matches!(time, 1 | 5 | 9));
        let began = tokio::time::Instant::now();
        let what = tokio::time::timeout(Duration::from_mins(2), hangs(&fake)).await.unwrap();
        assert_eq!(what, "it hangs at 14");
        // Three checks find an operator that works. The first check, and each after one of those,
        // comes after the longer period.
        let periods = 4 * PERIOD + 10 * HANGING_PERIOD;
        assert_eq!(began.elapsed(), periods);
    }
}
