//! The statistics of the server: its load, and the requests and connections that it has refused.

use std::collections::BTreeMap;

use tokio::sync::watch;

/// The statistics of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatistics {
    /// The open connections.
    pub connections: usize,
    /// The requests that are not answered yet.
    pub requests: usize,
    /// How many requests and connections were refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

impl ServerStatistics {
    /// Returns how many requests or connections were refused for this reason.
    pub fn refused(&self, reason: &str) -> u64 {
        self.refused.get(reason).copied().unwrap_or_default()
    }

    pub(super) fn count_refusal(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}

/// Counts a request for as long as it exists.
pub(super) struct RunningRequest<'a>(&'a watch::Sender<ServerStatistics>);

impl<'a> RunningRequest<'a> {
    pub(super) fn count(statistics: &'a watch::Sender<ServerStatistics>) -> Self {
        statistics.send_modify(|statistics| statistics.requests += 1);
        Self(statistics)
    }
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|statistics| statistics.requests -= 1);
    }
}
