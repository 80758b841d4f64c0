//! The spec that the Module has, and whether it can be used.

use super::rejection::Rejection;
use crate::rollout::Rollout;

/// The spec that was last seen, and why it cannot be used, if it cannot.
#[derive(Clone, Debug)]
pub(super) struct SpecState {
    pub(super) generation: i64,
    /// Whether the values are valid.
    pub(super) validity: Result<(), Rejection>,
    /// Whether the parameters fit the schema of the active revision.
    pub(super) parameters: Result<(), Rejection>,
    /// Whether the spec grants the finalizer of the active revision.
    pub(super) grant: Result<(), Rejection>,
    /// A check of the parameters is under way.
    pub(super) pending_check: Option<PendingCheck>,
    pub(super) is_paused: bool,
    pub(super) adopts_crds: bool,
    pub(super) rollout: Rollout,
}

impl Default for SpecState {
    fn default() -> Self {
        Self {
            generation: 0,
            validity: Ok(()),
            parameters: Ok(()),
            grant: Ok(()),
            pending_check: None,
            is_paused: false,
            adopts_crds: false,
            rollout: Rollout::default(),
        }
    }
}

impl SpecState {
    /// Why the active revision does not run with this spec, if it does not.
    pub(super) fn misfit(&self) -> Option<&Rejection> {
        let misfit = self.validity.as_ref().and(self.parameters.as_ref()).and(self.grant.as_ref());
        misfit.err()
    }

    /// Records that another revision is active, with parameters that fit it.
    pub(super) fn accept_parameters(&mut self) {
        (self.parameters, self.pending_check) = (Ok(()), None);
    }
}

/// Parameters whose check is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingCheck {
    /// They came with another source, so they may be for the next guest: no Event is written if
    /// they do not fit.
    pub(super) is_quiet: bool,
}
