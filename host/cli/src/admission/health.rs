//! Health and metrics of a host that may also review requests.

use std::sync::{Arc, OnceLock};

use innkeeper_operator::Operator;

use super::reviewing::Reviewing;
use crate::serve::{HealthSource, SharedHostState};

/// Health and metrics of the host: of its operator while it leads, and of its reviews all the time.
/// Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Health {
    /// The state of the host as a candidate for the Lease.
    pub(crate) state: SharedHostState<Operator>,
    /// What it reviews with; not set before the host has its key, and never without a server.
    reviewing: Arc<OnceLock<Reviewing>>,
}

impl Health {
    /// Adds the reviews; only the first call counts.
    pub(crate) fn set_reviewing(&self, reviewing: Reviewing) {
        let _ = self.reviewing.set(reviewing);
    }
}

impl HealthSource for Health {
    fn unready(&self) -> Option<String> {
        self.state.unready().or_else(|| self.reviewing.get().and_then(Reviewing::unready))
    }

    fn metrics(&self) -> String {
        let mut metrics = self.state.metrics();
        if let Some(reviewing) = self.reviewing.get() {
            metrics += &reviewing.metrics(self.state.is_leading());
        }
        metrics
    }

    fn stalled(&self) -> Option<String> {
        self.state.stalled()
    }
}
