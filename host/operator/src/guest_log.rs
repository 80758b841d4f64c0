//! The log lines of guests, bounded: the sandbox bounds the bytes of a run, this file the lines of
//! a module over time.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use innkeeper_cluster::Env;
use innkeeper_core::{ObjectKey, counted};
use innkeeper_sandbox::Level;
use tokio::time::Instant;

use crate::queue::write_rate::{BURST, WriteRateLimiter};

/// The lines that a module may log in a second in the long run. A burst of the lines of twenty
/// seconds is more than one run can log within its bytes.
pub const LINES_PER_SECOND: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// The log of one revision of a module.
#[derive(Debug)]
pub struct GuestLog {
    since: Instant,
    lines: Mutex<Lines>,
}

#[derive(Debug)]
struct Lines {
    rate: WriteRateLimiter,
    /// The lines that were dropped since the last written one.
    left_out: u64,
}

impl GuestLog {
    /// An empty log.
    pub fn new(env: &Env) -> Self {
        let mut rate = WriteRateLimiter::default();
        rate.set(LINES_PER_SECOND);
        Self { since: env.instant(), lines: Mutex::new(Lines { rate, left_out: 0 }) }
    }

    /// Writes a line to the host's log, unless the module has logged too many.
    pub fn write(&self, env: &Env, module: &str, key: &ObjectKey, (level, message): (Level, &str)) {
        if !self.may_write(env, module) {
            return;
        }
        write(module, Some(key), None, level, message);
    }

    /// Writes a line of a review to the host's log, unless the module has logged too many.
    /// `request` says which request it is.
    pub fn write_review(
        &self,
        env: &Env,
        module: &str,
        request: &str,
        (level, message): (Level, &str),
    ) {
        if self.may_write(env, module) {
            write(module, None, Some(request), level, message);
        }
    }

    /// Writes that a review failed, unless the module has logged too many lines.
    pub fn write_failure(&self, env: &Env, module: &str, request: &str, reason: &str) {
        if self.may_write(env, module) {
            tracing::warn!(%module, request, reason, "review failed");
        }
    }

    /// Writes a line of a call with an earlier revision of the primary, at the level debug. While
    /// nobody reads that level, the line takes none of the rate of the others.
    pub fn write_earlier(
        &self,
        env: &Env,
        module: &str,
        key: &ObjectKey,
        (revision, message): (&str, &str),
    ) {
        if tracing::enabled!(tracing::Level::DEBUG) && self.may_write(env, module) {
            tracing::debug!(%module, primary = %key, primary_revision = revision, guest = true, "{message}");
        }
    }

    /// Whether a line may be written; reports the lines that were dropped before it.
    fn may_write(&self, env: &Env, module: &str) -> bool {
        let Some(left_out) = self.admit(env.instant()) else { return false };
        if left_out > 0 {
            tracing::warn!(
                %module,
                "{} left out: the guest logs more than {LINES_PER_SECOND} lines a second",
                counted(left_out, "line of the guest was", "lines of the guest were")
            );
        }
        true
    }

    /// Whether a line may be written, and how many lines were dropped before it.
    fn admit(&self, now: Instant) -> Option<u64> {
        let now = now.duration_since(self.since);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.rate.ready_after(BURST, now) > now {
            lines.left_out += 1;
            return None;
        }
        lines.rate.spend(now);
        Some(std::mem::take(&mut lines.left_out))
    }
}

fn write(
    module: &str,
    primary: Option<&ObjectKey>,
    request: Option<&str>,
    level: Level,
    message: &str,
) {
    let primary = primary.map(tracing::field::display);
    match level {
        Level::Debug => tracing::debug!(%module, primary, request, guest = true, "{message}"),
        Level::Info => tracing::info!(%module, primary, request, guest = true, "{message}"),
        Level::Warn => tracing::warn!(%module, primary, request, guest = true, "{message}"),
        Level::Error => tracing::error!(%module, primary, request, guest = true, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_beyond_the_rate_are_left_out_and_counted() {
        let since = Instant::now();
        let mut rate = WriteRateLimiter::default();
        rate.set(LINES_PER_SECOND);
        let log = GuestLog { since, lines: Mutex::new(Lines { rate, left_out: 0 }) };
        let burst = u64::from(LINES_PER_SECOND.get()) * crate::queue::write_rate::BURST.as_secs();
        let written = (0..2 * burst).filter(|_| log.admit(since).is_some()).count();
        assert_eq!(written as u64, burst + 1, "what is at its bound may be written");
        let later = since + Duration::from_secs(1);
        assert_eq!(log.admit(later), Some(burst - 1), "they are counted with the next line");
        assert_eq!(log.admit(later), Some(0));
    }
}
