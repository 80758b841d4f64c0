//! The request to stop a server.

use tokio::sync::watch;

/// Receives the request to stop. Clones receive the same request.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Returns the sender of the request, and its receiver.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the request.
    pub(crate) async fn requested(mut self) {
        // A server that was dropped has stopped too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
