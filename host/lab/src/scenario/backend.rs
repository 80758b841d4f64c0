//! The cluster on which a case runs.

use std::time::Duration;

use innkeeper_cluster::Env;
use tokio::time::Instant;

use crate::api::Api;
use crate::lab::Lab;

/// How often the player reads a real cluster.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// How long a step on a real cluster waits for what its errors must not see.
const SETTLE_PERIOD: Duration = Duration::from_secs(5);

/// The step of virtual time in a lab.
const TICK: Duration = Duration::from_secs(1);

/// The cluster on which a case runs.
pub enum Backend {
    /// A lab, whose virtual time advances with each wait.
    Lab(Box<Lab>),
    /// A real cluster.
    Cluster(Api, Env),
}

impl Backend {
    pub(super) fn api(&self) -> &Api {
        match self {
            Self::Lab(lab) => lab.api(),
            Self::Cluster(api, _) => api,
        }
    }

    pub(super) fn lab(&self) -> Option<&Lab> {
        match self {
            Self::Lab(lab) => Some(lab),
            Self::Cluster(..) => None,
        }
    }

    /// The time of the clock by which the cluster runs.
    pub(super) fn instant(&self) -> Instant {
        match self {
            Self::Lab(lab) => lab.running().env().instant(),
            Self::Cluster(_, env) => env.instant(),
        }
    }

    /// Waits until nobody writes any more, at most for `limit`, and returns how long. Nobody knows
    /// that of a real cluster: there it waits for a few seconds.
    pub(super) async fn settle(&self, limit: Duration) -> Duration {
        match self {
            Self::Lab(lab) => {
                let begun = lab.running().env().now();
                // A cluster where writes go on is judged as it is.
                let _ = lab.settle(limit).await;
                let passed = lab.running().env().now().duration_since(begun);
                Duration::try_from(passed).unwrap_or_default()
            }
            Self::Cluster(_, env) => {
                env.sleep(SETTLE_PERIOD.min(limit)).await;
                SETTLE_PERIOD.min(limit)
            }
        }
    }

    /// Waits for a moment, and returns its length.
    pub(super) async fn wait(&self) -> Duration {
        match self {
            Self::Lab(lab) => {
                lab.pass(TICK).await;
                TICK
            }
            Self::Cluster(_, env) => {
                env.sleep(POLL_PERIOD).await;
                POLL_PERIOD
            }
        }
    }
}
