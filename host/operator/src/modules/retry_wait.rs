//! How long the host waits before it tries something again for a module.

use std::time::Duration;

use innkeeper_cluster::{Backoff, Env, Task};

/// After so long without a wait the next one is the first one again. It is more than the longest
/// wait.
const FORGET_AFTER: Duration = Duration::from_mins(15);

/// The waits of one module for one purpose; at most one is under way.
pub(super) struct RetryWait {
    backoff: Backoff,
    /// When the last wait began.
    last: Duration,
    /// The wait that is under way; dropping it ends it.
    task: Option<Task<()>>,
}

impl RetryWait {
    /// Waits, longer than `before`, and then calls `act`. The first wait is `bounds.0`, the longest
    /// `bounds.1`.
    pub(super) fn begin(
        env: &Env,
        bounds: (Duration, Duration),
        before: Option<Self>,
        act: impl FnOnce() + Send + 'static,
    ) -> Self {
        let last = env.uptime();
        let is_recent = |wait: &Self| last.saturating_sub(wait.last) < FORGET_AFTER;
        let mut backoff = before
            .filter(is_recent)
            .map_or_else(|| Backoff::new(env, bounds.0, bounds.1), |wait| wait.backoff);
        let (wait, clock) = (backoff.advance(), env.clone());
        let task = env.spawn("retry later", async move {
            clock.sleep(wait).await;
            act();
        });
        Self { backoff, last, task: Some(task) }
    }

    /// Whether a wait is under way, or its end has not been taken yet.
    pub(super) fn is_pending(&self) -> bool {
        self.task.is_some()
    }

    /// Records that the end of the wait is taken: the next one may begin.
    pub(super) fn end(&mut self) {
        self.task = None;
    }
}
