//! The parameters of the active revision: they are in force once they have been checked.

use super::{Effect, Machine, Rejection, RetryPolicy, warning};

/// Parameters whose check is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingCheck {
    /// They came with another source, so they may be the next guest's: no Event is written if
    /// they do not fit.
    is_quiet: bool,
}

impl Machine {
    /// The active revision goes on with the present settings; other parameters are checked first.
    pub(super) fn apply_settings(
        &mut self,
        other_parameters: bool,
        other_source: bool,
        effects: &mut Vec<Effect>,
    ) {
        if self.active.is_none() {
            return;
        }
        effects.push(Effect::ApplySettings { parameters: !other_parameters });
        self.pending_check = None;
        if other_parameters {
            self.pending_check = Some(PendingCheck { is_quiet: other_source });
            effects.push(Effect::CheckParameters);
        } else {
            self.fits = Ok(());
        }
    }

    /// A check that the host could not do is done again.
    pub(super) fn retry_parameters(&self, effects: &mut Vec<Effect>) {
        let failed =
            self.fits.as_ref().is_err_and(|rejection| rejection.retry == RetryPolicy::Later);
        if self.active.is_some() && failed {
            effects.push(Effect::CheckParameters);
        }
    }

    /// The present parameters were checked against the schema of the active revision.
    pub(super) fn on_parameters(
        &mut self,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.active.is_none() {
            return;
        }
        let is_quiet = self.pending_check.take().is_some_and(|unchecked| unchecked.is_quiet);
        match &result {
            Ok(()) => effects.push(Effect::ApplySettings { parameters: true }),
            Err(rejection) => {
                if !is_quiet && self.fits != result {
                    effects.push(warning(rejection));
                }
                if rejection.retry == RetryPolicy::Later {
                    effects.push(Effect::RetryLater);
                }
            }
        }
        self.fits = result;
    }
}
