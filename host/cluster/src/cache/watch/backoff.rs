//! The waits after failures of a watch: [`WatchBackoff`].

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::{WATCH_RETRY_MAX, WATCH_RETRY_MIN};
use crate::{Backoff, Env};

/// The waits after failures, which get longer while failures follow each other closely. The
/// watcher does not report that it resumed a watch; a time without failures shows it.
pub(super) struct WatchBackoff {
    env: Env,
    backoff: Backoff,
    last: Option<Instant>,
}

impl WatchBackoff {
    pub(super) fn new(env: &Env) -> Self {
        let backoff = Backoff::new(env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
        Self { env: env.clone(), backoff, last: None }
    }

    pub(super) fn advance(&mut self) -> Duration {
        let now = self.env.instant();
        // This time includes the last wait, hence twice the longest one.
        if self.last.is_some_and(|last| now - last > 2 * WATCH_RETRY_MAX) {
            self.backoff.reset();
        }
        self.last = Some(now);
        self.backoff.advance()
    }

    pub(super) fn reset(&mut self) {
        self.backoff.reset();
    }
}
