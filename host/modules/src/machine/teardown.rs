//! Transitions of a Module that is being deleted.
//!
//! The host creates nothing any more, and no candidate becomes active. It removes the module's
//! finalizer from its primaries, since nobody could delete them otherwise; for those that are being
//! deleted it asks the guest first. For that a revision must be active: after a restart of the
//! host, the last one is loaded once more. Then the host removes its finalizer from the Module.

use innkeeper_contract::EventType;

use super::rejection::Rejection;
use super::{Candidate, DirectEffect, Effect, Event, LoadedCandidate, Machine};

impl Machine {
    pub(super) fn on_deleting(&mut self, effects: &mut Vec<Effect>) {
        self.teardown = Some(Ok(()));
        self.missing_crds = None;
        self.adoption = None;
        let restored = self.revisions.restored.filter(|_| self.revisions.active.is_none());
        match restored {
            Some(digest)
                if self.candidate.is_loading() && self.candidate.digest() == Some(digest) => {}
            Some(digest) => {
                self.candidate = Candidate::RestoringSnapshot(digest);
                effects.push(DirectEffect::RestoreSnapshot(digest).into());
            }
            None => self.begin_teardown(effects),
        }
    }

    /// Takes an event during the teardown; most have no effect any more.
    pub(super) fn step_teardown(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::SnapshotRestored { digest, result }
                if self.candidate == Candidate::RestoringSnapshot(digest) =>
            {
                match result {
                    Ok(()) => {
                        self.candidate = Candidate::Loading(digest);
                        effects.push(Effect::Load(digest));
                    }
                    Err(_) => self.begin_teardown(effects),
                }
            }
            Event::Loaded { digest, result } if self.candidate == Candidate::Loading(digest) => {
                if let Ok(info) = result
                    && self.overlap.is_none()
                {
                    self.swap(LoadedCandidate::new(digest, info), effects);
                }
                self.begin_teardown(effects);
            }
            Event::Retry if self.candidate == Candidate::ModuleDeleted => {
                effects.push(Effect::Teardown);
            }
            Event::TornDown(result) => self.on_torn_down(result, effects),
            Event::Health(result) => self.runs = Some(result),
            Event::Deleted => effects.push(DirectEffect::RemoveModule.into()),
            _ => {}
        }
    }

    fn begin_teardown(&mut self, effects: &mut Vec<Effect>) {
        self.end_rollback_window(effects);
        (self.progress.reusable, self.progress.retried) = (None, None);
        self.candidate = Candidate::ModuleDeleted;
        effects.push(Effect::Teardown);
    }

    fn on_torn_down(&mut self, result: Result<String, Rejection>, effects: &mut Vec<Effect>) {
        match result {
            Ok(message) => {
                self.teardown = Some(Ok(()));
                effects.push(Effect::notify(EventType::Normal, "FinalizersRemoved", message));
                effects.push(DirectEffect::RemoveFinalizer.into());
            }
            Err(rejection) => {
                if self.teardown != Some(Err(rejection.clone())) {
                    effects.push(Effect::warning(&rejection));
                }
                self.teardown = Some(Err(rejection));
                effects.push(DirectEffect::RetryLater.into());
            }
        }
    }
}
