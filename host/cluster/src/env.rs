//! The environment: wall clock, timers, randomness and spawning.
//!
//! Nothing else in the host may read a clock, draw a random number or spawn a task, so a test can
//! run the whole loop again from a seed. The timers are tokio's, which a test pauses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::pause::Pause;

/// The environment, made once at the start. Clones share one source of randomness.
#[derive(Clone)]
pub struct Env {
    clock: Clock,
    random: Arc<Mutex<fastrand::Rng>>,
}

#[derive(Clone)]
enum Clock {
    Wall,
    Scripted(Script),
}

/// What a test does to the process.
#[derive(Clone)]
struct Script {
    /// The wall clock at the start.
    start: Timestamp,
    /// Tokio's clock at the start.
    origin: Instant,
    /// By how many seconds the wall clock was set forward.
    jumped: Arc<AtomicI64>,
    pause: Pause,
}

fn uptime() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    // On other systems the monotonic clock goes on through suspends.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}

/// The error of a time limit that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs_f64())]
pub struct Elapsed(
    /// The limit.
    pub Duration,
);

impl Env {
    /// Uses the machine's clock, and a seed of the machine.
    pub fn real() -> Self {
        Self { clock: Clock::Wall, random: Arc::new(Mutex::new(fastrand::Rng::new())) }
    }

    /// Uses a clock that starts at `start` and runs with tokio's timers (which a test pauses), and
    /// randomness from `seed`.
    pub fn scripted(seed: u64, start: Timestamp) -> Self {
        let script = Script {
            start,
            origin: Instant::now(),
            jumped: Arc::default(),
            pause: Pause::default(),
        };
        Self {
            clock: Clock::Scripted(script),
            random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))),
        }
    }

    /// The wall-clock time.
    pub fn now(&self) -> Timestamp {
        match &self.clock {
            Clock::Wall => Timestamp::now(),
            Clock::Scripted(script) => {
                let jumped = SignedDuration::from_secs(script.jumped.load(Ordering::Relaxed));
                SignedDuration::try_from(script.origin.elapsed())
                    .ok()
                    .and_then(|elapsed| elapsed.checked_add(jumped))
                    .and_then(|elapsed| script.start.checked_add(elapsed).ok())
                    .unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Sets the wall clock forward, or back, as somebody does to the machine of the host. Timers
    /// are not affected. The machine's own clock stays as it is.
    pub fn set_clock_forward(&self, seconds: i64) {
        if let Clock::Scripted(script) = &self.clock {
            script.jumped.fetch_add(seconds, Ordering::Relaxed);
        }
    }

    /// Pauses all tasks that this environment has spawned, or lets them go on, as SIGSTOP and
    /// SIGCONT do to a process. Only a scripted environment does so.
    pub fn set_paused(&self, is_paused: bool) {
        if let Clock::Scripted(script) = &self.clock {
            script.pause.set(is_paused);
        }
    }

    /// The time of the timers' clock, which never goes back and is independent of [`Env::now`].
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// The time since some moment before the start. Unlike [`Env::instant`] it goes on while the
    /// machine is suspended: for time limits that other hosts count too.
    pub fn uptime(&self) -> Duration {
        match &self.clock {
            Clock::Wall => uptime(),
            Clock::Scripted(script) => script.origin.elapsed(),
        }
    }

    /// Waits for a duration.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits for a future, at most for `limit`; drops it when the limit runs out.
    ///
    /// # Errors
    /// [`Elapsed`] if the limit runs out first.
    pub async fn timeout<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        tokio::time::timeout(limit, future).await.map_err(|_| Elapsed(limit))
    }

    /// Draws a random number.
    pub fn random(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).u64(..)
    }

    /// Draws a duration evenly from `duration` ± 20 %, so that many waits do not end at once.
    pub fn jitter(&self, duration: Duration) -> Duration {
        let drawn = self.random.lock().unwrap_or_else(PoisonError::into_inner).f64();
        duration.mul_f64(0.8 + 0.4 * drawn)
    }

    /// Spawns a future as a task. `name` is for logs.
    ///
    /// The drop of the handle ends the task.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let handle = match &self.clock {
            Clock::Wall => tokio::spawn(future),
            Clock::Scripted(script) => tokio::spawn(script.pause.task(future)),
        };
        Task { name, handle }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.clock {
            Clock::Wall => "Env(real)",
            Clock::Scripted(_) => "Env(scripted)",
        })
    }
}

/// A spawned task. The drop aborts it. An await gives its output, or `None` if it panicked or was
/// aborted.
#[derive(Debug)]
#[must_use = "a task ends when its handle is dropped"]
pub struct Task<T> {
    name: &'static str,
    handle: JoinHandle<T>,
}

impl<T> Task<T> {
    /// The name given at [`Env::spawn`].
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Ends the task at its next wait.
    pub fn abort(&self) {
        self.handle.abort();
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.handle).poll(cx).map(|joined| match joined {
            Ok(output) => Some(output),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(task = self.name, "task panicked");
                }
                None
            }
        })
    }
}

/// The waits between repeats of an operation that may succeed later. Each is twice as long as the
/// one before.
#[derive(Clone, Debug)]
pub struct Backoff {
    env: Env,
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// The first wait is `min`, each next one is twice as long, up to `max`; all have jitter.
    pub fn new(env: &Env, min: Duration, max: Duration) -> Self {
        Self { env: env.clone(), min, max, next: min }
    }

    /// The next wait.
    pub fn advance(&mut self) -> Duration {
        let wait = self.env.jitter(self.next);
        self.next = (self.next * 2).min(self.max);
        wait
    }

    /// Makes `min` the next wait, after a success.
    pub fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn scripted_clock_runs_with_the_timers() {
        let env = Env::scripted(1, start());
        assert_eq!(env.now(), start());
        env.sleep(Duration::from_secs(90)).await;
        assert_eq!(env.now().to_string(), "2026-01-01T00:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn clock_that_is_set_changes_the_time_and_no_timer() {
        let env = Env::scripted(1, start());
        env.set_clock_forward(3_600);
        env.sleep(Duration::from_secs(5)).await;
        assert_eq!(env.now().to_string(), "2026-01-01T01:00:05Z");
        env.set_clock_forward(-7_200);
        assert_eq!(env.now().to_string(), "2025-12-31T23:00:05Z");
        assert_eq!(env.uptime(), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn paused_task_runs_after_the_pause_and_its_timer_is_late() {
        let env = Env::scripted(1, start());
        let ran = Arc::new(Mutex::new(None));
        let task = env.spawn("test", {
            let (env, ran) = (env.clone(), ran.clone());
            async move {
                env.sleep(Duration::from_secs(1)).await;
                *ran.lock().unwrap() = Some(env.uptime());
            }
        });
        env.sleep(Duration::from_millis(500)).await;
        env.set_paused(true);
        env.sleep(Duration::from_secs(10)).await;
        assert_eq!(*ran.lock().unwrap(), None);
        env.set_paused(false);
        task.await;
        assert_eq!(*ran.lock().unwrap(), Some(Duration::from_millis(10_500)));
    }

    #[tokio::test(start_paused = true)]
    async fn same_seed_draws_the_same_numbers() {
        let draw = |seed| {
            let env = Env::scripted(seed, start());
            let second = Duration::from_secs(1);
            (env.random(), env.jitter(second), env.jitter(second))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[tokio::test(start_paused = true)]
    async fn elapsed_timeout_names_its_limit() {
        let env = Env::scripted(1, start());
        let late = env
            .timeout(Duration::from_millis(1500), std::future::pending::<()>())
            .await
            .unwrap_err();
        assert_eq!(late.to_string(), "no answer within 1.5 s");
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_task_handle_ends_the_task() {
        let env = Env::scripted(1, start());
        let (alive, gone) = tokio::sync::oneshot::channel::<()>();
        let task = env.spawn("test", async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        drop(task);
        assert!(gone.await.is_err(), "the sender is dropped with the task");
    }

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_up_to_its_maximum_until_it_is_reset() {
        let env = Env::scripted(1, start());
        let seconds = |duration: Duration| duration.as_secs_f64();
        let mut backoff = Backoff::new(&env, Duration::from_secs(1), Duration::from_secs(5));
        for about in [1.0, 2.0, 4.0, 5.0, 5.0] {
            let wait = seconds(backoff.advance());
            assert!((about * 0.8..=about * 1.2).contains(&wait), "{wait} is not about {about}");
        }
        backoff.reset();
        assert!(seconds(backoff.advance()) <= 1.2);
    }
}
