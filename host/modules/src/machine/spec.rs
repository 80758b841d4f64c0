//! Transitions by the Module's spec, and by the check of its parameters.

use super::rejection::{Rejection, RetryPolicy};
use super::spec_state::PendingCheck;
use super::{Candidate, DirectEffect, Effect, Machine, Source, Spec};

impl Machine {
    pub(super) fn on_spec(
        &mut self,
        generation: i64,
        spec: Result<Spec, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        self.spec.generation = generation;
        let spec = match spec {
            Ok(spec) => spec,
            Err(rejection) => {
                if self.spec.validity.as_ref() != Err(&rejection) {
                    effects.push(Effect::warning(&rejection));
                }
                self.spec.validity = Err(rejection);
                return;
            }
        };
        let was_adopting = self.spec.adopts_crds;
        self.spec.validity = Ok(());
        self.spec.is_paused = spec.paused;
        self.spec.adopts_crds = spec.adopts_crds;
        self.spec.rollout = spec.rollout;
        self.apply_settings(spec.other_parameters, spec.other_source, effects);
        self.rejections.remove_retryable(|_, retry| retry != RetryPolicy::Never);
        self.progress.reusable = None;
        // It may not be paused any more, or grant what it did not.
        self.reinstall_crds(effects);
        self.adopt_crds_of_spec(was_adopting, effects);
        if spec.other_source || self.source == Source::Unknown {
            self.source = Source::Unknown;
            effects.push(Effect::Fetch);
        }
        match self.candidate {
            // A decision stays.
            Candidate::Nothing | Candidate::RestoringSnapshot(_) | Candidate::Committing(_) => {}
            Candidate::Loading(_) => self.progress.is_outdated = true,
            // allowedCRDGroups, the parameters and the limits of the rollout may have changed.
            Candidate::Previewing(_)
            | Candidate::Held(..)
            | Candidate::InstallingCrds(_)
            | Candidate::Rejected(..)
            | Candidate::ModuleDeleted => self.evaluate_source(effects),
        }
    }

    /// Applies the present settings to the active revision; other parameters are checked first.
    fn apply_settings(
        &mut self,
        other_parameters: bool,
        other_source: bool,
        effects: &mut Vec<Effect>,
    ) {
        if self.revisions.active.is_none() {
            return;
        }
        effects.push(Effect::ApplySettings { parameters: !other_parameters });
        self.spec.pending_check = None;
        if other_parameters {
            self.spec.pending_check = Some(PendingCheck { is_quiet: other_source });
            effects.push(Effect::CheckParameters);
        } else {
            self.spec.parameters = Ok(());
        }
    }

    /// Repeats a check that the host could not do.
    pub(super) fn retry_parameters(&self, effects: &mut Vec<Effect>) {
        let parameters = self.spec.parameters.as_ref();
        let failed = parameters.is_err_and(|rejection| rejection.retry == RetryPolicy::Later);
        if self.revisions.active.is_some() && failed {
            effects.push(Effect::CheckParameters);
        }
    }

    /// Looks the kinds of the parameters up again. The conditions show only a result that differs.
    pub(super) fn on_kinds_changed(&self, effects: &mut Vec<Effect>) {
        if self.revisions.active.is_some() && self.spec.pending_check.is_none() {
            effects.push(Effect::CheckParameters);
        }
    }

    pub(super) fn on_parameters(
        &mut self,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.revisions.active.is_none() {
            return;
        }
        let is_quiet = self.spec.pending_check.take().is_some_and(|check| check.is_quiet);
        match &result {
            Ok(()) => effects.push(Effect::ApplySettings { parameters: true }),
            Err(rejection) => {
                if !is_quiet && self.spec.parameters != result {
                    effects.push(Effect::warning(rejection));
                }
                if rejection.retry == RetryPolicy::Later {
                    effects.push(DirectEffect::RetryLater.into());
                }
            }
        }
        self.spec.parameters = result;
    }

    /// Takes whether the present spec grants what the active revision needs. A misfit is reported;
    /// the active revision stays.
    pub fn check_grant(&mut self, grant: Result<(), Rejection>) -> Vec<Effect> {
        if self.spec.grant == grant || self.is_tearing_down() {
            return Vec::new();
        }
        let warning = grant.as_ref().err().map(Effect::warning);
        self.spec.grant = grant;
        warning.into_iter().chain([Effect::Report]).collect()
    }
}
