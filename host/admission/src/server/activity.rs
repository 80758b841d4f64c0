//! What a connection does now, and until when it may.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::limits::ServerLimits;

/// What a connection does now, and until when it may.
pub(super) struct Activity {
    limits: ServerLimits,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    phase: Phase,
    /// None while a request runs: that has a deadline of its own.
    until: Option<Instant>,
    has_answered: bool,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The TLS handshake.
    Handshake,
    /// Nothing: no byte of the next request is here.
    Idle,
    /// A part of a head is here.
    Head,
    /// A request runs.
    Request,
    /// The last response is under way.
    Closing,
}

impl Activity {
    /// The activity of a connection that was accepted now.
    pub(super) fn new(limits: ServerLimits) -> Self {
        let until = Some(Instant::now() + limits.handshake_time);
        let state = State { phase: Phase::Handshake, until, has_answered: false };
        Self { limits, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection waits for its first request.
    pub(super) fn set_open(&self) {
        self.set(Phase::Idle, Some(Instant::now() + self.limits.idle_time));
    }

    /// Bytes have arrived.
    pub(super) fn set_received(&self) {
        if self.phase() == Phase::Idle {
            self.set(Phase::Head, Some(Instant::now() + self.limits.head_time));
        }
    }

    /// The head of a request is complete.
    pub(super) fn set_request(&self) {
        self.set(Phase::Request, None);
    }

    /// The response of a request is made, and the connection goes on.
    pub(super) fn set_answered(&self) {
        self.state().has_answered = true;
        self.set_open();
    }

    /// No further request is read. Repeated calls do not prolong the time.
    pub(super) fn set_closing(&self) {
        if self.phase() != Phase::Closing {
            self.set(Phase::Closing, Some(Instant::now() + self.limits.close_time));
        }
    }

    fn set(&self, phase: Phase, until: Option<Instant>) {
        let mut state = self.state();
        (state.phase, state.until) = (phase, until);
    }

    pub(super) fn phase(&self) -> Phase {
        self.state().phase
    }

    pub(super) fn until(&self) -> Option<Instant> {
        self.state().until
    }

    pub(super) fn has_answered(&self) -> bool {
        self.state().has_answered
    }
}
