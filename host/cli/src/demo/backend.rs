//! The cluster on which the demo runs, with an operator.

use std::time::Duration;

use innkeeper_lab::Api;

/// A cluster with a running operator.
pub(super) trait Backend {
    /// The client for requests of the demo.
    fn api(&self) -> &Api;

    /// Whether time passes by itself. Otherwise it passes only in [`Self::advance`].
    fn has_own_clock(&self) -> bool;

    /// How long the demo waits for one condition, on this cluster's clock.
    fn timeout(&self) -> Duration;

    /// Lets `time` pass.
    ///
    /// # Errors
    /// If the operator has ended.
    async fn advance(&mut self, time: Duration) -> anyhow::Result<()>;

    /// Ends the operator, and removes from a live cluster what the demo created. `print` gets
    /// lines for the user.
    ///
    /// # Errors
    /// The objects that could not be removed.
    async fn end(self, print: &mut impl FnMut(&str)) -> anyhow::Result<()>;
}
