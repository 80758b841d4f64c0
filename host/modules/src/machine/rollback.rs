//! The rollback window: the time after a swap in which failures return to the previous revision.

use innkeeper_contract::EventType;

use super::rejection::{Rejection, RetryPolicy};
use super::{Effect, Machine, reason};
use crate::source::Digest;

impl Machine {
    /// More primaries of a revision fail than may: activates the previous one again. If another
    /// revision is active by now, the failures say nothing about it.
    pub(super) fn on_failure_threshold_exceeded(
        &mut self,
        digest: Digest,
        rejection: &Rejection,
        effects: &mut Vec<Effect>,
    ) {
        if !self.revisions.is_active(digest) {
            return;
        }
        // Outside of the rollback window there is no revision to return to.
        let Some(before) = self.revisions.rollback_target.take() else { return };
        let Some(bad) = self.revisions.active.replace(before.clone()) else { return };
        let rejection = Rejection::new(
            reason::ROLLED_BACK,
            format!("it was active and was rolled back: {}", rejection.message),
            RetryPolicy::Never,
        );
        effects.push(Effect::Rollback);
        effects.push(Effect::EndRollbackWindow);
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
        if self.revisions.is_active(digest) {
            self.end_rollback_window(effects);
        }
    }

    /// Drops the revision that a rollback would return to, if there is one.
    pub(super) fn end_rollback_window(&mut self, effects: &mut Vec<Effect>) {
        if self.revisions.rollback_target.take().is_some() {
            effects.push(Effect::EndRollbackWindow);
        }
    }
}
