//! Transitions of a decided candidate: the decision and the swap.

use innkeeper_contract::EventType;

use super::rejection::Rejection;
use super::{ActiveRevision, Candidate, DirectEffect, Effect, LoadedCandidate, Machine, reason};
use crate::source::Digest;

impl Machine {
    /// Decides for a candidate. It becomes active when the decision is written.
    pub(super) fn commit(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        // Another module may have become active while the definitions were installed.
        if let Some(overlap) = self.overlap.clone() {
            return self.reject(loaded.digest, overlap, effects);
        }
        // The status names the revision that was active before the host started already.
        if self.revisions.is_restored(loaded.digest) {
            effects.push(Effect::SaveSnapshot(loaded.digest));
            self.swap(loaded, effects);
            self.adopt_crds(effects);
            return self.evaluate_source(effects);
        }
        effects.push(Effect::Commit(loaded.digest));
        self.candidate = Candidate::Committing(loaded);
    }

    pub(super) fn on_committed(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::Committing(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        match result {
            Ok(()) => {
                // The decision that is written contains the rollback.
                self.roll_back(effects);
                self.swap(loaded, effects);
                // The source may have another component by now.
                self.evaluate_source(effects);
            }
            // It is decided: only another try helps.
            Err(rejection) => {
                if self.progress.retried != Some((digest, rejection.clone())) {
                    effects.push(Effect::warning(&rejection));
                    self.progress.retried = Some((digest, rejection));
                }
                effects.push(DirectEffect::RetryLater.into());
            }
        }
    }

    /// Makes a loaded component the active revision.
    pub(super) fn swap(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        let LoadedCandidate { digest, title, .. } = loaded;
        self.end_rollback_window(effects);
        effects.push(Effect::Swap(digest));
        // The revision that was active before the host started is no news.
        if !self.revisions.is_restored(digest) {
            let message = format!("{title} ({}) is the active revision now.", digest.short());
            effects.push(Effect::notify(EventType::Normal, reason::REVISION_ACTIVE, message));
        }
        let before = self.revisions.active_digest();
        self.revisions.history =
            self.revisions.history.after_swap(before, digest, &self.rejections);
        if let Some(before) = self.revisions.active.replace(ActiveRevision { digest, title }) {
            // The host does not return to a rejected revision by itself.
            let is_rejected = self.rejections.is_permanent(before.digest);
            if !self.spec.rollout.rollback_window.is_zero() && !is_rejected {
                self.revisions.rollback_target = Some(before);
                effects.push(Effect::BeginRollbackWindow(digest));
            }
        }
        self.revisions.restored = None;
        self.approvals.record_active(digest);
        self.candidate = Candidate::Nothing;
        (self.progress.reusable, self.progress.retried) = (None, None);
        self.spec.accept_parameters();
        self.runs = None;
        self.missing_crds = None;
        self.adoption = None;
    }
}
