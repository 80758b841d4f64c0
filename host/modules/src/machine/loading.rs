//! Transitions of a candidate from its load to the decision.

use innkeeper_contract::EventType;

use super::event::ComponentInfo;
use super::rejection::{Rejection, RetryPolicy};
use super::{
    Candidate, DirectEffect, Effect, HeldCandidate, LoadedCandidate, Machine, Source, reason,
};
use crate::rollout::{Preview, Strategy};
use crate::source::Digest;

impl Machine {
    pub(super) fn on_loaded(
        &mut self,
        digest: Digest,
        result: Result<ComponentInfo, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::Loading(digest) {
            return;
        }
        let is_present = self.source == Source::Present(digest);
        // A revision that was active before becomes active again whatever the source has now.
        let is_restored = self.revisions.is_restored(digest);
        if !is_restored && (self.progress.is_outdated || !is_present) {
            self.candidate = Candidate::Nothing;
            // Bytes that can never be loaded stay refused, also when the source has others now.
            if let Err(rejection) = result
                && rejection.retry == RetryPolicy::Never
            {
                self.rejections.record(digest, rejection);
            }
            return self.evaluate_source(effects);
        }
        let result = result.and_then(|info| {
            info.fits.clone()?;
            self.overlap.clone().map_or(Ok(()), Err)?;
            Ok(LoadedCandidate::new(digest, info))
        });
        match result {
            Err(rejection) if is_restored && !is_present => {
                self.drop_restored(&rejection, effects);
            }
            Err(rejection) => self.reject(digest, rejection, effects),
            Ok(loaded) => match self.rejections.find(digest) {
                Some(rejection) if !is_restored => {
                    self.candidate = Candidate::Rejected(digest, rejection.clone());
                }
                // Its definitions are installed since it was active.
                _ if is_restored && !is_present => {
                    self.swap(loaded, effects);
                    self.adopt_crds(effects);
                    self.evaluate_source(effects);
                }
                _ if self.is_guarded(&loaded) => {
                    self.candidate = Candidate::Previewing(loaded);
                    effects.push(Effect::Preview(digest));
                }
                _ => self.install(loaded, effects),
            },
        }
    }

    /// Whether a component is previewed before it becomes active: not if it was active before the
    /// host started, nor if a user has approved it.
    fn is_guarded(&self, loaded: &LoadedCandidate) -> bool {
        let (digest, revisions) = (loaded.digest, &self.revisions);
        if self.approvals.approved == Some(digest) || revisions.is_restored(digest) {
            return false;
        }
        match self.spec.rollout.strategy {
            Strategy::Immediate => false,
            // The first revision has nothing to be compared with, but for a policy: without one
            // everything is allowed.
            Strategy::Guarded => {
                loaded.enforces
                    || revisions.active.is_some()
                    || revisions.restored.is_some()
                    || revisions.is_restored_lost
            }
            Strategy::Manual => true,
        }
    }

    pub(super) fn on_previewed(
        &mut self,
        digest: Digest,
        result: Result<Preview, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let is_again = self.progress.is_previewed_again;
        let (loaded, before) = match &self.candidate {
            Candidate::Previewing(loaded) => (loaded.clone(), None),
            Candidate::Held(loaded, held) if is_again => (loaded.clone(), Some(held)),
            _ => return,
        };
        if loaded.digest != digest {
            return;
        }
        let before = before.map(|held| held.rejection.reason.clone());
        self.progress.is_previewed_again = false;
        let mut preview = match result {
            Ok(preview) => preview,
            // It stays held for what is known.
            Err(_) if before.is_some() => return effects.push(DirectEffect::RetryLater.into()),
            Err(rejection) => return self.reject(digest, rejection, effects),
        };
        // A user who returns to an earlier revision knows which kind it reconciles.
        if self.revisions.history.contains(digest) {
            preview.abandoned = None;
        }
        match preview.held_by(&self.spec.rollout) {
            Some(rejection) if self.approvals.approved != Some(digest) => {
                let held = HeldCandidate { preview, rejection, approval: digest };
                self.hold(loaded, held, before.as_deref(), effects);
            }
            _ => self.install(loaded, effects),
        }
    }

    /// Holds a candidate until it is approved, or until its preview shows no harm any more. There
    /// is no Event if it was held for the same reason before.
    fn hold(
        &mut self,
        loaded: LoadedCandidate,
        held: HeldCandidate,
        before: Option<&str>,
        effects: &mut Vec<Effect>,
    ) {
        if before != Some(&*held.rejection.reason) {
            let (title, digest) = (&loaded.title, loaded.digest.short());
            let (why, stays) = (&held.rejection.message, self.stays_active());
            let message = format!("{title} ({digest}) is held: {why}{stays}");
            effects.push(Effect::notify(EventType::Warning, reason::HELD, message));
        }
        if held.may_end_by_itself(loaded.digest) {
            effects.push(DirectEffect::RetryLater.into());
        }
        self.progress.retried = None;
        self.candidate = Candidate::Held(loaded, Box::new(held));
    }

    /// Installs the definitions of a candidate, if it has some, and commits it.
    pub(super) fn install(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        // A preview that is still repeated has nothing to decide any more.
        self.progress.is_previewed_again = false;
        if let Some(overlap) = self.overlap.clone() {
            return self.reject(loaded.digest, overlap, effects);
        }
        if loaded.has_crds {
            effects.push(Effect::InstallCrds(loaded.digest));
            self.candidate = Candidate::InstallingCrds(loaded);
        } else {
            self.commit(loaded, effects);
        }
    }

    pub(super) fn on_crds(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::InstallingCrds(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        match result {
            Ok(()) => self.commit(loaded, effects),
            Err(rejection) => {
                if rejection.retry == RetryPolicy::Later {
                    self.progress.reusable = Some(loaded);
                }
                self.reject(digest, rejection, effects);
            }
        }
    }

    /// Refuses the candidate.
    pub(super) fn reject(
        &mut self,
        digest: Digest,
        rejection: Rejection,
        effects: &mut Vec<Effect>,
    ) {
        if self.progress.retried.take() != Some((digest, rejection.clone())) {
            effects.push(Effect::notify(
                EventType::Warning,
                &rejection.reason,
                format!(
                    "{} is refused: {}{}",
                    digest.short(),
                    rejection.message,
                    self.stays_active()
                ),
            ));
        }
        if rejection.retry == RetryPolicy::Later {
            effects.push(DirectEffect::RetryLater.into());
        } else {
            self.keep_active_after_dropped_rollback(digest);
        }
        self.rejections.record(digest, rejection.clone());
        self.candidate = Candidate::Rejected(digest, rejection);
    }

    pub(super) fn on_retry(&mut self, effects: &mut Vec<Effect>) {
        self.retry_parameters(effects);
        self.retry_adoption(effects);
        self.retry_rollback(effects);
        match &self.candidate {
            Candidate::Rejected(digest, rejection) if rejection.retry == RetryPolicy::Later => {
                let retried = Some((*digest, rejection.clone()));
                self.rejections.remove_retryable(|_, retry| retry == RetryPolicy::Later);
                self.evaluate_source(effects);
                self.progress.retried = retried;
            }
            Candidate::Held(loaded, held)
                if held.may_end_by_itself(loaded.digest) && !self.progress.is_previewed_again =>
            {
                self.progress.is_previewed_again = true;
                effects.push(Effect::Preview(loaded.digest));
            }
            Candidate::Committing(loaded) => effects.push(Effect::Commit(loaded.digest)),
            _ => {}
        }
    }
}

impl LoadedCandidate {
    /// A component that was loaded.
    pub(super) fn new(digest: Digest, info: ComponentInfo) -> Self {
        Self { digest, title: info.title, has_crds: info.has_crds, enforces: info.enforces }
    }
}
