//! One run of the process of a client, which a crash ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// A process. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Process {
    crashed: watch::Sender<bool>,
    is_claimed: Arc<AtomicBool>,
}

impl Default for Process {
    fn default() -> Self {
        Self { crashed: watch::Sender::new(false), is_claimed: Arc::default() }
    }
}

impl Process {
    /// Ends the process.
    pub fn crash(&self) {
        self.crashed.send_replace(true);
    }

    /// Whether the process has ended.
    pub fn is_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Whether this is the first call for this process, so that the caller starts the next one.
    pub(crate) fn claim_restart(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::SeqCst)
    }

    /// Waits until the process ends.
    pub async fn crashed(&self) {
        // The sender is in this process, so the channel is open.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }
}
