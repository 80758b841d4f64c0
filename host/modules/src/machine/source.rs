//! Transitions by the source: which component is the next candidate.

use innkeeper_contract::EventType;

use super::rejection::{Rejection, RetryPolicy};
use super::{Candidate, DirectEffect, Effect, Machine, Source, reason};
use crate::source::Digest;

impl Machine {
    pub(super) fn on_source(
        &mut self,
        result: Result<Digest, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let source = match result {
            Ok(digest) => Source::Present(digest),
            Err(rejection) => {
                if self.source != Source::Unavailable(rejection.clone()) {
                    effects.push(self.notice_of(&rejection));
                }
                Source::Unavailable(rejection)
            }
        };
        if source != self.source {
            // No retry was scheduled while the source had another component: try it now.
            if let Source::Present(present) = source {
                self.rejections.remove_retryable(|digest, retry| {
                    digest == present && retry == RetryPolicy::Later
                });
            }
            self.source = source;
            // A rollback rejected the active revision, and the user returns from it.
            if self.source_digest().is_some_and(|present| self.revisions.is_active(present)) {
                self.keep_active();
            }
            self.evaluate_source(effects);
        }
    }

    /// The Event about a source without a component. A new Module is usually created before its
    /// component is pushed: no warning about that.
    fn notice_of(&self, unavailable: &Rejection) -> Effect {
        let Rejection { reason, message, .. } = unavailable;
        let is_new = self.source == Source::Unknown
            && self.revisions.active.is_none()
            && self.revisions.restored.is_none();
        if is_new && reason == reason::SOURCE_NOT_FOUND {
            let message = format!("{message}; the module starts when it does");
            return Effect::notify(EventType::Normal, reason, message);
        }
        let message = format!("{message}{}", self.stays_active());
        Effect::notify(EventType::Warning, reason, message)
    }

    pub(super) fn on_snapshot_restored(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::RestoringSnapshot(digest) {
            return;
        }
        match result {
            Ok(()) => self.load(digest, effects),
            Err(rejection) => self.drop_restored(&rejection, effects),
        }
    }

    /// The revision that was active before the host started is lost: only the source is left.
    pub(super) fn drop_restored(&mut self, rejection: &Rejection, effects: &mut Vec<Effect>) {
        effects.push(Effect::notify(
            EventType::Warning,
            &rejection.reason,
            format!(
                "The revision that was active before the host started cannot be loaded: {}",
                rejection.message
            ),
        ));
        self.revisions.restored = None;
        self.revisions.is_restored_lost = true;
        self.candidate = Candidate::Nothing;
        self.evaluate_source(effects);
    }

    /// Makes the present component of the source the candidate, if it is to be one.
    pub(super) fn evaluate_source(&mut self, effects: &mut Vec<Effect>) {
        // A decision is carried out before the next candidate, and a load ends first.
        if self.candidate.is_loading() || matches!(self.candidate, Candidate::Committing(_)) {
            return;
        }
        self.candidate = Candidate::Nothing;
        self.progress.retried = None;
        self.progress.is_previewed_again = false;
        if self.source == Source::Unknown {
            return;
        }
        let present = self.source_digest();
        if let Some(restored) = self.revisions.restored
            && self.revisions.active.is_none()
            && present != Some(restored)
        {
            self.candidate = Candidate::RestoringSnapshot(restored);
            effects.push(DirectEffect::RestoreSnapshot(restored).into());
            return;
        }
        let Some(digest) = present else { return };
        if self.revisions.is_active(digest) {
            return;
        }
        // A revision that was active before the host started becomes active again, although a user
        // has rejected it: there is no other.
        if let Some(rejection) = self.rejections.find(digest)
            && !self.revisions.is_restored(digest)
        {
            self.candidate = Candidate::Rejected(digest, rejection.clone());
            return;
        }
        let reusable = self.progress.reusable.clone().filter(|loaded| loaded.digest == digest);
        if let Some(loaded) = reusable {
            effects.push(Effect::InstallCrds(digest));
            self.candidate = Candidate::InstallingCrds(loaded);
            return;
        }
        self.progress.reusable = None;
        self.load(digest, effects);
    }

    fn load(&mut self, digest: Digest, effects: &mut Vec<Effect>) {
        self.candidate = Candidate::Loading(digest);
        self.progress.is_outdated = false;
        effects.push(Effect::Load(digest));
    }
}
