//! The rollback window: the time after a swap in which failures return to the previous revision.
//!
//! The host writes the decision before the previous revision reconciles its first primary, as for
//! a candidate: a host that is killed at any moment neither forgets a rollback nor repeats it.

use innkeeper_contract::EventType;

use super::decided_rollback::DecidedRollback;
use super::rejection::{Rejection, RetryPolicy};
use super::{DirectEffect, Effect, Machine, reason};
use crate::source::Digest;

impl Machine {
    /// More primaries of a revision fail than may: decides to return to the previous one. If
    /// another revision is active by now, the failures say nothing about it.
    pub(super) fn on_failure_threshold_exceeded(
        &mut self,
        digest: Digest,
        rejection: &Rejection,
        effects: &mut Vec<Effect>,
    ) {
        // Outside of the rollback window there is no revision to return to.
        let Some(target) = &self.revisions.rollback_target else { return };
        if self.rollback.is_some() || !self.revisions.is_active(digest) {
            return;
        }
        effects.push(Effect::CommitRollback(target.digest));
        let message = format!("it was active and was rolled back: {}", rejection.message);
        let rejection = Rejection::new(reason::ROLLED_BACK, message, RetryPolicy::Never);
        self.rollback = Some(DecidedRollback { rejection, unwritten: None });
    }

    pub(super) fn on_rollback_committed(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let target = self.revisions.rollback_target.as_ref().map(|target| target.digest);
        let Some(rollback) = self.rollback.as_mut().filter(|_| target == Some(digest)) else {
            return;
        };
        match result {
            Ok(()) => self.roll_back(effects),
            // It is decided: only another try helps.
            Err(rejection) => {
                if rollback.unwritten.as_ref() != Some(&rejection) {
                    effects.push(Effect::warning(&rejection));
                    rollback.unwritten = Some(rejection);
                }
                effects.push(DirectEffect::RetryLater.into());
            }
        }
    }

    /// Writes a rollback that is decided again.
    pub(super) fn retry_rollback(&self, effects: &mut Vec<Effect>) {
        let target = self.revisions.rollback_target.as_ref().filter(|_| self.rollback.is_some());
        effects.extend(target.map(|target| Effect::CommitRollback(target.digest)));
    }

    /// The machine once the rollback that is decided is carried out; `None` without one.
    pub fn rolled_back(&self) -> Option<Self> {
        self.rollback.as_ref()?;
        let mut machine = self.clone();
        machine.roll_back(&mut Vec::new());
        Some(machine)
    }

    /// Activates the previous revision again, if that is decided.
    pub(super) fn roll_back(&mut self, effects: &mut Vec<Effect>) {
        let Some(DecidedRollback { rejection, .. }) = self.rollback.take() else { return };
        let Some(before) = self.revisions.rollback_target.take() else { return };
        let Some(bad) = self.revisions.active.replace(before.clone()) else { return };
        effects.push(Effect::Rollback(before.digest));
        effects.push(DirectEffect::EndRollbackWindow.into());
        effects.push(Effect::notify(
            EventType::Warning,
            reason::ROLLED_BACK,
            format!(
                "{} ({}) is active again. {} ({}) is not tried again: {}",
                before.title,
                before.digest.short(),
                bad.title,
                bad.digest.short(),
                rejection.message
            ),
        ));
        self.runs = None;
        self.missing_crds = None;
        self.adoption = None;
        self.spec.accept_parameters();
        // The status offers no return to a revision that was rolled back.
        self.rejections.record(bad.digest, rejection);
        self.revisions.history =
            self.revisions.history.after_swap(Some(bad.digest), before.digest, &self.rejections);
        if !self.candidate.is_loading() {
            self.evaluate_source(effects);
        }
    }

    pub(super) fn on_rollback_window_over(&mut self, digest: Digest, effects: &mut Vec<Effect>) {
        // A rollback that was decided in time is carried out.
        if self.revisions.is_active(digest) && self.rollback.is_none() {
            self.end_rollback_window(effects);
        }
    }

    /// Drops the revision that a rollback would return to, if there is one.
    pub(super) fn end_rollback_window(&mut self, effects: &mut Vec<Effect>) {
        self.rollback = None;
        if self.revisions.rollback_target.take().is_some() {
            effects.push(DirectEffect::EndRollbackWindow.into());
        }
    }
}
