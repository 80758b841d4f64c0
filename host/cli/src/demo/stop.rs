//! Requests of the user to stop the demo.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Counts the requests to stop. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Adds a request.
    pub(super) fn request(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of requests until now.
    pub(super) fn requests(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The user stopped the demo.
#[derive(Debug, thiserror::Error)]
#[error("the demo stopped before its last scenario: the user interrupted it")]
pub(super) struct Stopped;

/// The signals that stop the demo: SIGINT and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to catch them.
    ///
    /// # Errors
    /// If the system refuses the handlers.
    pub(super) fn new() -> anyhow::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
