//! The thread that advances the epoch of guests: [`Ticker`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::settings::TICK;

/// The time after which the thread sleeps if no tick in it met a call: so calls that follow each
/// other do not wake it each time.
const IDLE_TIME_MAX: Duration = Duration::from_secs(1);

/// The longest time between two ticks of a thread that does not sleep. Most calls end long before a
/// tick. With a tick every [`TICK`] the thread took up to a tenth of the host's CPU time when each
/// second brought a few calls.
const PAUSE_MAX: Duration = TICK.saturating_mul(5);

/// Advances an engine's epoch while guests are called, until its drop: every [`TICK`] once a tick
/// meets a call, and less often while ticks meet none. So a call's first tick comes at most
/// [`PAUSE_MAX`] after it begins.
#[derive(Debug)]
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the calls share.
#[derive(Debug, Default)]
struct State {
    /// The number of calls that run.
    calls: AtomicUsize,
    /// Whether the thread sleeps until the next call.
    is_asleep: AtomicBool,
    is_dropped: AtomicBool,
    /// The number of ticks so far.
    #[cfg(test)]
    ticks: AtomicUsize,
}

/// When the next tick comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    /// The time until the next tick.
    pause: Duration,
    /// The time since the last tick that met a call.
    idle: Duration,
}

/// While this value lives, the epoch advances.
#[derive(Debug)]
pub(crate) struct Ticking<'a>(&'a State);

impl Ticker {
    /// Starts the thread, which sleeps until the first call.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let state = Arc::<State>::default();
        let (engine, shared) = (engine.weak(), state.clone());
        let thread = thread::Builder::new().name("epoch".into()).spawn(move || {
            let mut pace = Pace::AT_REST;
            while !shared.is_dropped.load(Ordering::SeqCst) {
                if pace.is_at_rest() {
                    shared.sleep_until_call();
                    pace = Pace::AT_CALL;
                }
                shared.wait(pace.pause);
                let Some(engine) = engine.upgrade() else { break };
                engine.increment_epoch();
                #[cfg(test)]
                shared.ticks.fetch_add(1, Ordering::SeqCst);
                pace = pace.after_tick(shared.calls.load(Ordering::SeqCst));
            }
        })?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Advances the epoch from now on, until the drop of what this returns.
    pub(crate) fn tick(&self) -> Ticking<'_> {
        self.state.calls.fetch_add(1, Ordering::SeqCst);
        // The thread looks at the number of calls after it says that it sleeps, so that one of the
        // two sees the other.
        if self.state.is_asleep.load(Ordering::SeqCst) {
            self.wake();
        }
        Ticking(&self.state)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Pace {
    const AT_CALL: Self = Self { pause: TICK, idle: Duration::ZERO };
    const AT_REST: Self = Self { pause: PAUSE_MAX, idle: IDLE_TIME_MAX };

    /// The pace after a tick that met so many calls.
    fn after_tick(self, calls: usize) -> Self {
        if calls > 0 {
            return Self::AT_CALL;
        }
        Self {
            pause: self.pause.saturating_mul(2).min(PAUSE_MAX),
            idle: self.idle.saturating_add(self.pause),
        }
    }

    fn is_at_rest(self) -> bool {
        self.idle >= IDLE_TIME_MAX
    }
}

impl State {
    /// Waits so long, or until the ticker is dropped. A call that began while the thread woke may
    /// have unparked it once too often, which must not make this tick early.
    fn wait(&self, pause: Duration) {
        let began = Instant::now();
        while let Some(left) = pause.checked_sub(began.elapsed())
            && !left.is_zero()
            && !self.is_dropped.load(Ordering::SeqCst)
        {
            thread::park_timeout(left);
        }
    }

    /// Sleeps until a call runs, or the ticker is dropped.
    fn sleep_until_call(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        while self.calls.load(Ordering::SeqCst) == 0 && !self.is_dropped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.is_dropped.store(true, Ordering::SeqCst);
        self.wake();
        // During a tick the thread has a strong reference to the engine: only after its end is the
        // engine's memory free.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until a condition holds, at most for ten seconds.
    fn wait_until(what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < Duration::from_secs(10), "{what}");
            thread::sleep(TICK);
        }
    }

    #[test]
    fn epoch_advances_during_calls_and_stands_still_between_them() {
        let engine = wasmtime::Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        let ticks = || ticker.state.ticks.load(Ordering::SeqCst);
        let is_asleep = || ticker.state.is_asleep.load(Ordering::SeqCst);
        wait_until("the thread sleeps before the first call", is_asleep);
        assert_eq!(ticks(), 0);
        for _ in 0..2 {
            let before = ticks();
            let (first, second) = (ticker.tick(), ticker.tick());
            drop(first);
            wait_until("the epoch advances while a call runs", || ticks() > before + 1);
            assert!(!is_asleep(), "a call still runs");
            drop(second);
            wait_until("the thread sleeps a second after the last call", is_asleep);
        }
    }

    #[test]
    fn pauses_grow_until_a_tick_meets_a_call() {
        let mut pace = Pace::AT_CALL;
        let mut pauses = Vec::new();
        while !pace.is_at_rest() {
            pauses.push(pace.pause.as_millis());
            pace = pace.after_tick(0);
        }
        assert_eq!(pauses[..5], [10, 20, 40, 50, 50]);
        assert_eq!(pauses.len(), 22, "ticks in the second before the thread sleeps");
        assert_eq!(pace.after_tick(1), Pace::AT_CALL);
    }
}
