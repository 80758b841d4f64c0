//! Why a scenario cannot be played.

use std::io;

use innkeeper_lab::{ApiFailure, LabError};

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The lab does not start.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The Module does not become active.
    #[error("{0}")]
    Inactive(String),
    /// The simulated API server refuses a sample.
    #[error("the simulated API server refuses a sample: {0}")]
    Sample(String),
    /// The simulated API server does not give what the comparison needs.
    #[error("cannot read the simulated cluster: {0}")]
    Read(#[from] ApiFailure),
    /// The component cannot be copied for a swap.
    #[error("cannot make another component for a swap: {0}")]
    Component(io::Error),
}
