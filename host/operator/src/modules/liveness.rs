//! Whether the supervisor of modules makes progress.
//!
//! The supervisor is one task: if it hangs, no module is loaded, reported or torn down any more,
//! while the primaries are still reconciled and everything looks well. The supervisor records here
//! what it does, and `/healthz` asks from another task how long that has taken.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_cluster::Env;
use tokio::time::Instant;

/// The longest time after which the supervisor wakes, if nothing else wakes it.
pub const WAKE_PERIOD: Duration = Duration::from_secs(10);

/// The longest time that the supervisor computes or sleeps without being polled.
pub const IDLE_MAX: Duration = Duration::from_mins(1);

/// The longest time of one step, its requests and their retries included.
pub const STEP_MAX: Duration = Duration::from_mins(5);

/// The present step of the supervisor, and since when.
#[derive(Debug)]
pub struct SupervisorLiveness {
    env: Env,
    progress: Mutex<SupervisorProgress>,
}

/// What the supervisor last did, and since when.
#[derive(Debug, Default)]
struct SupervisorProgress {
    /// When the supervisor last began or stopped computing; `None` while it does not run.
    seen: Option<Instant>,
    is_computing: bool,
    /// The step, and since when.
    step: Option<(String, Instant)>,
}

impl SupervisorLiveness {
    /// The state before the supervisor runs.
    pub fn new(env: &Env) -> Self {
        Self { env: env.clone(), progress: Mutex::default() }
    }

    /// Runs the supervisor, and records its polls until it ends.
    pub async fn watch<F: Future>(&self, supervisor: F) -> F::Output {
        let mut supervisor = pin!(supervisor);
        let output = poll_fn(|context| {
            self.see(true);
            let poll = supervisor.as_mut().poll(context);
            self.see(false);
            poll
        })
        .await;
        // A supervisor that panics does not get here, and is found hanging.
        *self.progress() = SupervisorProgress::default();
        output
    }

    /// Records that the supervisor begins a step.
    pub fn begin(&self, what: String) {
        self.progress().step = Some((what, self.env.instant()));
    }

    /// Records that the supervisor waits for its next event.
    pub fn rest(&self) {
        self.progress().step = None;
    }

    /// The step in which the supervisor hangs, for users; `None` if it makes progress, or does not
    /// run.
    pub fn stalled(&self) -> Option<String> {
        let progress = self.progress();
        let now = self.env.instant();
        let quiet = now.duration_since(progress.seen?);
        let (what, lasts) = match &progress.step {
            Some((what, since)) => (what.as_str(), now.duration_since(*since)),
            None => ("resting", quiet),
        };
        let hangs = if progress.is_computing || progress.step.is_none() {
            quiet > IDLE_MAX
        } else {
            lasts > STEP_MAX
        };
        hangs.then(|| {
            format!("the supervisor of modules hangs: it has been {what} for {} s", lasts.as_secs())
        })
    }

    fn see(&self, is_computing: bool) {
        let mut progress = self.progress();
        progress.seen = Some(self.env.instant());
        progress.is_computing = is_computing;
    }

    fn progress(&self) -> MutexGuard<'_, SupervisorProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn liveness() -> Arc<SupervisorLiveness> {
        let env = Env::scripted(1, "2026-01-01T00:00:00Z".parse().unwrap());
        Arc::new(SupervisorLiveness::new(&env))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn supervisor_that_wakes_in_time_does_not_hang() {
        let liveness = liveness();
        assert_eq!(liveness.stalled(), None, "it does not run yet");
        let supervisor = async {
            for _ in 0..100 {
                tokio::time::sleep(WAKE_PERIOD).await;
                assert_eq!(liveness.stalled(), None);
            }
        };
        liveness.watch(supervisor).await;
        tokio::time::sleep(STEP_MAX).await;
        assert_eq!(liveness.stalled(), None, "it has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn supervisor_that_computes_for_too_long_hangs_and_says_in_what() {
        let liveness = liveness();
        let supervisor = async {
            liveness.begin("handling the module a".to_owned());
            // What a hang within one poll looks like from another thread.
            tokio::time::advance(IDLE_MAX).await;
            let mut once = true;
            poll_fn(|context| {
                if std::mem::take(&mut once) {
                    context.waker().wake_by_ref();
                    return std::task::Poll::Pending;
                }
                std::task::Poll::Ready(())
            })
            .await;
            assert_eq!(liveness.stalled(), None, "it has just been polled");
        };
        liveness.watch(supervisor).await;
        liveness.see(true);
        liveness.begin("handling the module a".to_owned());
        tokio::time::advance(IDLE_MAX + SECOND).await;
        assert_eq!(
            liveness.stalled().unwrap(),
            "the supervisor of modules hangs: it has been handling the module a for 61 s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn supervisor_that_waits_for_a_request_has_longer() {
        let liveness = liveness();
        let waiting = tokio::spawn({
            let liveness = liveness.clone();
            async move {
                let supervisor = async {
                    liveness.begin("writing the status of a".to_owned());
                    std::future::pending::<()>().await;
                };
                liveness.watch(supervisor).await;
            }
        });
        tokio::time::sleep(STEP_MAX).await;
        assert_eq!(liveness.stalled(), None);
        tokio::time::sleep(SECOND).await;
        assert!(liveness.stalled().unwrap().ends_with("writing the status of a for 301 s"));
        waiting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn supervisor_that_panicked_is_found() {
        let liveness = liveness();
        let broken = tokio::spawn({
            let liveness = liveness.clone();
            async move { liveness.watch(async { panic!("a mistake") }).await }
        });
        assert!(broken.await.is_err());
        tokio::time::sleep(IDLE_MAX + SECOND).await;
        assert!(liveness.stalled().unwrap().contains("resting for 61 s"));
    }
}
