//! Says that a process of a client has crashed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Tells all requests of one process of a client that it has crashed. Clones are the same one.
#[derive(Clone, Debug)]
pub struct CrashSignal {
    crashed: watch::Sender<bool>,
    is_claimed: Arc<AtomicBool>,
}

impl Default for CrashSignal {
    fn default() -> Self {
        Self { crashed: watch::Sender::new(false), is_claimed: Arc::default() }
    }
}

impl CrashSignal {
    /// Marks the process as crashed.
    pub fn crash(&self) {
        self.crashed.send_replace(true);
    }

    /// Whether the process has crashed.
    pub fn is_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Whether this is the first call for this process, so that the caller starts the next one.
    pub(crate) fn claim_restart(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::SeqCst)
    }

    /// Waits until the process crashes.
    pub async fn crashed(&self) {
        // The sender is in this signal, so the channel is open.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }
}
