//! Where the demo is played.

use std::time::Duration;

use innkeeper_lab::{Api, Lab};

use super::real::Real;

/// How long each thing that is waited for may take: virtual time, and time on the wall.
const VIRTUAL: Duration = Duration::from_mins(3);
const WALL: Duration = Duration::from_mins(5);

/// A cluster with an operator.
pub(super) enum Place {
    /// A simulated one, whose time passes when somebody lets it.
    Simulated(Box<Lab>),
    /// A real one.
    Real(Box<Real>),
}

impl Place {
    /// Requests to the cluster.
    pub(super) fn api(&self) -> &Api {
        match self {
            Self::Simulated(lab) => lab.api(),
            Self::Real(real) => real.api(),
        }
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If the operator has ended.
    pub(super) async fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        match self {
            Self::Simulated(lab) => {
                lab.pass(time).await;
                Ok(())
            }
            Self::Real(real) => real.pass(time).await,
        }
    }

    /// Whether time passes by itself.
    pub(super) fn has_own_time(&self) -> bool {
        matches!(self, Self::Real(_))
    }

    /// How long each thing that is waited for may take.
    pub(super) fn bound(&self) -> Duration {
        match self {
            Self::Simulated(_) => VIRTUAL,
            Self::Real(_) => WALL,
        }
    }

    /// What is said at first.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Simulated(_) => "A simulated cluster with Innkeeper and its guests".to_owned(),
            Self::Real(real) => real.title(),
        }
    }

    /// Ends the operator, and takes away what was made on a cluster that stays.
    ///
    /// # Errors
    /// What could not be taken away.
    pub(super) async fn end(self, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        match self {
            Self::Simulated(lab) => {
                lab.end().await;
                Ok(())
            }
            Self::Real(real) => real.end(say).await,
        }
    }
}
