//! The phase of a connection, with its time limit: [`Activity`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::limits::ServerLimits;

/// The phase of a connection, with its time limit.
pub(super) struct Activity {
    limits: ServerLimits,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    phase: Phase,
    /// When the phase has to be over; `None` while a request runs, which has its own deadline.
    until: Option<Instant>,
    has_answered: bool,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The TLS handshake.
    Handshake,
    /// No byte of the next request has arrived.
    Idle,
    /// A part of the head of a request has arrived.
    Head,
    /// A request runs.
    Request,
    /// The server sends the last response, and reads no further request.
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
