//! A Module that is being deleted: what it takes before it goes.
//!
//! Nothing is made any more, and no other version comes to serve. The module's finalizer comes off
//! its primaries, since nobody could delete them otherwise; those that are being deleted are asked
//! first what is left to do. For that a version is needed that serves: after a restart
//! of the host, what served last is loaded once more. Then the Module is let go.

use innkeeper_contract::{Event as Notice, EventType};

use super::{Candidate, Effect, Event, Machine, Rejection, warning};

impl Machine {
    /// The Module is being deleted.
    pub(super) fn on_deleting(&mut self, effects: &mut Vec<Effect>) {
        self.teardown = Some(Ok(()));
        match (self.restored_digest, &self.candidate) {
            (
                Some(past),
                Candidate::RestoringSnapshot(on_its_way) | Candidate::Loading(on_its_way),
            ) if *on_its_way == past && self.active.is_none() => {}
            (Some(past), _) if self.active.is_none() => {
                self.candidate = Candidate::RestoringSnapshot(past);
                effects.push(Effect::RestoreSnapshot(past));
            }
            _ => self.begin_teardown(effects),
        }
    }

    /// Nothing but leaving counts any more.
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
                if let Ok(facts) = result {
                    self.swap(super::loaded(digest, facts), effects);
                }
                self.begin_teardown(effects);
            }
            Event::Retry if self.candidate == Candidate::Teardown => effects.push(Effect::Teardown),
            Event::TornDown(result) => self.on_torn_down(result, effects),
            Event::Health(result) => self.runs = Some(result),
            Event::Deleted => effects.push(Effect::Stop),
            _ => {}
        }
    }

    fn begin_teardown(&mut self, effects: &mut Vec<Effect>) {
        if self.rollback_target.take().is_some() {
            effects.push(Effect::EndRollbackWindow);
        }
        (self.checked, self.retried) = (None, None);
        self.candidate = Candidate::Teardown;
        effects.push(Effect::Teardown);
    }

    fn on_torn_down(&mut self, result: Result<String, Rejection>, effects: &mut Vec<Effect>) {
        match result {
            Ok(message) => {
                self.teardown = Some(Ok(()));
                effects.push(Effect::Notify(Notice {
                    type_: EventType::Normal,
                    reason: "FinalizersRemoved".to_owned(),
                    message,
                }));
                effects.push(Effect::RemoveFinalizer);
            }
            Err(rejection) => {
                if self.teardown != Some(Err(rejection.clone())) {
                    effects.push(warning(&rejection));
                }
                self.teardown = Some(Err(rejection));
                effects.push(Effect::RetryLater);
            }
        }
    }
}
