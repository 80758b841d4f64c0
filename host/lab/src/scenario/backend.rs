//! Where a case is played.

use std::time::Duration;

use innkeeper_cluster::Env;

use crate::api::Api;
use crate::lab::Lab;

/// How often a real cluster is looked at.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// How finely time passes in a lab.
const TICK: Duration = Duration::from_secs(1);

/// Where a case is played.
pub enum Backend {
    /// In a lab, whose time passes when it is waited for.
    Lab(Box<Lab>),
    /// On a cluster that runs by itself.
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

    /// Lets a while pass. Says how long it was.
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
