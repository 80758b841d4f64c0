//! The pause of a process: its tasks do not run, and what is due meanwhile is late.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

/// Whether the tasks of an [`Env`](crate::Env) run. Clones are the same one.
///
/// A paused task is not polled. Its timers go on, so after the pause those that are due are late,
/// as in a process that got SIGSTOP, or on a machine that was suspended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    /// The tasks that were woken meanwhile.
    waiting: Vec<Waker>,
}

impl Pause {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses all tasks, or lets them go on.
    pub(crate) fn set(&self, is_paused: bool) {
        let mut state = self.lock();
        state.is_paused = is_paused;
        let waiting = if is_paused { Vec::new() } else { std::mem::take(&mut state.waiting) };
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll_running(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.is_paused {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// The future as a task that the pause stops.
    pub(crate) fn task<F: Future>(&self, future: F) -> Pausable<F> {
        Pausable { pause: self.clone(), future: Box::pin(future) }
    }
}

/// A future that makes no progress during a pause.
pub(crate) struct Pausable<F> {
    pause: Pause,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        ready!(self.pause.poll_running(context));
        self.future.as_mut().poll(context)
    }
}
