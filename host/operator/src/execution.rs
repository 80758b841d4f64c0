//! On which thread blocking work runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

/// The time within which a call that runs on a thread of the runtime has to end. With the sandbox's
/// ticks it can take four times as long before it is interrupted.
pub const SHORT: Duration = Duration::from_millis(5);

/// The number of calls of a revision that run on threads of their own after one was not short.
const LONG_CALLS: u32 = 100;

/// On which thread calls of guests and other blocking work run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// On threads that may block; needs a runtime of several threads.
    Threads,
    /// On the loop's own thread, one at a time and in order: for tests and simulation.
    Inline,
}

/// Whether the calls of a revision's guest are short.
#[derive(Debug, Default)]
pub struct CallPace {
    /// The number of calls that still run on threads of their own.
    long_calls: AtomicU32,
}

impl Execution {
    /// Runs work that blocks, and gives its result.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Threads => tokio::task::block_in_place(work),
            Self::Inline => work(),
        }
    }

    /// Runs a call of a guest, and gives its result. While the calls are short it runs on the
    /// present thread, since each change of threads costs more than such a call does: `call` gets
    /// the time after which it is to end. If it does not end in that time, its result is dropped,
    /// and it runs again without such a time, as [`run`](Self::run) says. If the second call is at
    /// work for that time, so do the next [`LONG_CALLS`] calls; else the first one only waited for
    /// a processor. So a guest that takes long delays other work by four times [`SHORT`] at most,
    /// and in one of a hundred calls.
    pub fn run_call<T>(self, pace: &CallPace, mut call: impl FnMut(Option<Duration>) -> T) -> T {
        if self == Self::Threads && pace.is_short() {
            let began = Instant::now();
            let result = call(Some(SHORT));
            if began.elapsed() < SHORT {
                return result;
            }
            let worked = thread_time();
            let result = self.run(|| call(None));
            if thread_time().saturating_sub(worked) >= SHORT {
                pace.long_calls.store(LONG_CALLS, Ordering::Relaxed);
            }
            return result;
        }
        self.run(|| call(None))
    }
}

/// The time for which the present thread has been at work.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl CallPace {
    /// Whether the next call is likely to be short.
    fn is_short(&self) -> bool {
        let left = |calls: u32| calls.checked_sub(1);
        self.long_calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a call that takes some time; gives the bounds that it got.
    fn call(execution: Execution, pace: &CallPace, takes: Duration) -> Vec<Option<Duration>> {
        let mut bounds = Vec::new();
        execution.run_call(pace, |bound| {
            bounds.push(bound);
            let began = thread_time();
            while thread_time().saturating_sub(began) < takes {
                std::hint::spin_loop();
            }
        });
        bounds
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn call_that_is_not_short_runs_again_on_a_thread_of_its_own_as_do_the_next_ones() {
        let pace = CallPace::default();
        let made = |takes| call(Execution::Threads, &pace, takes);
        assert_eq!(made(SHORT), [Some(SHORT), None]);
        for _ in 0..LONG_CALLS {
            assert_eq!(made(Duration::ZERO), [None]);
        }
        assert_eq!(made(SHORT), [Some(SHORT), None], "whether they are short again is tried");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn call_that_waited_for_a_processor_runs_again_and_the_next_ones_do_not() {
        let pace = CallPace::default();
        let result = Execution::Threads.run_call(&pace, |bound| {
            // As if others had the processor meanwhile.
            let began = Instant::now();
            while bound.is_some() && began.elapsed() < SHORT {
                std::thread::park_timeout(SHORT);
            }
            bound
        });
        assert_eq!(result, None, "it ran again");
        assert_eq!(pace.long_calls.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn call_in_the_loop_has_no_bound_and_runs_once() {
        assert_eq!(call(Execution::Inline, &CallPace::default(), SHORT), [None]);
    }
}
