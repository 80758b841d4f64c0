//! How long the host waits before it installs a definition again that somebody deleted.

use std::time::Duration;

use innkeeper_cluster::{Backoff, Env, Task};

/// The wait before the first installation.
pub(super) const WAIT_MIN: Duration = Duration::from_secs(1);

/// The longest wait: how often a controller that keeps deleting a definition sees it again.
pub(super) const WAIT_MAX: Duration = Duration::from_mins(5);

/// After so long without a missing definition the next wait is the first one again. It is more than
/// the longest wait.
const FORGET_AFTER: Duration = Duration::from_mins(15);

/// The waits of one module.
pub(super) struct ReinstallWait {
    backoff: Backoff,
    /// When the last wait began.
    last: Duration,
    /// The wait that is under way, or was last; dropping it ends it.
    _task: Task<()>,
}

impl ReinstallWait {
    /// Waits, longer than `before`, and then calls `act`.
    pub(super) fn begin(
        env: &Env,
        before: Option<Self>,
        act: impl FnOnce() + Send + 'static,
    ) -> Self {
        let last = env.uptime();
        let is_recent = |wait: &Self| last.saturating_sub(wait.last) < FORGET_AFTER;
        let mut backoff = before
            .filter(is_recent)
            .map_or_else(|| Backoff::new(env, WAIT_MIN, WAIT_MAX), |wait| wait.backoff);
        let (wait, clock) = (backoff.advance(), env.clone());
        let task = env.spawn("reinstall later", async move {
            clock.sleep(wait).await;
            act();
        });
        Self { backoff, last, _task: task }
    }
}
