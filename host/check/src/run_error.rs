//! Why a scenario cannot be run.

use std::io;

use innkeeper_lab::{ApiFailure, LabError};
use innkeeper_sandbox::LoadError;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lab does not start.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The Module does not become active.
    #[error("{0}")]
    Inactive(String),
    /// The simulated API server refuses a sample.
    #[error("the simulated API server refuses a sample: {0}")]
    Sample(String),
    /// The host writes nothing for any sample, so that there is nothing to check. Has the reasons
    /// of the guest's failures.
    #[error("the host writes nothing for the samples, so there is nothing to check; {}", failures(.0))]
    Idle(String),
    /// The simulated API server does not give what the comparison needs.
    #[error("cannot read the simulated cluster: {0}")]
    Read(#[from] ApiFailure),
    /// The component cannot be read, or not be copied for a swap.
    #[error("cannot use the file of the component: {0}")]
    Component(io::Error),
    /// The component cannot be loaded for calls without a host.
    #[error("cannot load the component: {0}")]
    Load(#[from] LoadError),
}

fn failures(reasons: &str) -> String {
    match reasons {
        "" => "the guest reports no failure".to_owned(),
        reasons => format!("the guest fails: {reasons}"),
    }
}
