//! Notices that the operator hangs, so that this host gives up its Lease and ends.

use std::time::Duration;

use crate::serve::HealthSource;

/// How often it is asked.
const PERIOD: Duration = Duration::from_secs(1);

/// So many times in a row the operator must hang: a host that was paused is late itself, and the
/// operator takes its turn then.
const TIMES: u32 = 5;

/// Waits until the operator hangs; says in what.
pub(crate) async fn hangs(told: &impl HealthSource) -> String {
    let mut times = 0;
    loop {
        tokio::time::sleep(PERIOD).await;
        match told.stalled() {
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

    /// Hangs at the times, counted from 1, for which the function says so.
    #[derive(Clone)]
    struct Fake(Arc<AtomicU32>, fn(u32) -> bool);

    impl HealthSource for Fake {
        fn is_ready(&self) -> bool {
            true
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
    async fn operator_that_hangs_for_a_moment_is_left_alone_and_one_that_stays_so_is_found() {
        let fake = Fake(Arc::default(), |time| !matches!(time, 1 | 5 | 9));
        let what = tokio::time::timeout(Duration::from_mins(1), hangs(&fake)).await.unwrap();
        assert_eq!(what, "it hangs at 14");
    }
}
