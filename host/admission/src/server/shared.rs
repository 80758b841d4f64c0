//! The state that all connections share.

use std::sync::Arc;

use tokio::sync::watch;

use super::body_budget::BodyBudget;
use super::limits::ServerLimits;
use super::statistics::ServerStatistics;

/// The state that all connections share.
pub(super) struct Shared<R> {
    pub(super) reviewer: Arc<R>,
    pub(super) limits: ServerLimits,
    pub(super) bodies: BodyBudget,
    pub(super) statistics: watch::Sender<ServerStatistics>,
}

impl<R> Shared<R> {
    pub(super) fn new(reviewer: Arc<R>, limits: ServerLimits) -> Self {
        let statistics = watch::Sender::new(ServerStatistics::default());
        Self { reviewer, limits, bodies: BodyBudget::new(limits), statistics }
    }

    /// Counts a refused request or connection.
    pub(super) fn count_refusal(&self, reason: &'static str) {
        self.statistics.send_modify(|statistics| statistics.count_refusal(reason));
    }
}
