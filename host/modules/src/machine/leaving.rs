//! A Module that is being deleted: what it takes before it goes.
//!
//! Nothing is made any more, and no other version comes to serve. The module's finalizer comes off
//! its primaries, since nobody could delete them otherwise; those that are being deleted are asked
//! first what is left to do. For that a version is needed that serves: after a restart
//! of the host, what served last is loaded once more. Then the Module is let go.

use innkeeper_contract::{Event as Notice, EventType};

use super::{Candidate, Effect, Event, Machine, Verdict, warning};

impl Machine {
    /// The Module is being deleted.
    pub(super) fn on_deleting(&mut self, effects: &mut Vec<Effect>) {
        self.leaving = Some(Ok(()));
        match (self.past, &self.candidate) {
            (Some(past), Candidate::Recalling(on_its_way) | Candidate::Loading(on_its_way))
                if *on_its_way == past && self.serving.is_none() => {}
            (Some(past), _) if self.serving.is_none() => {
                self.candidate = Candidate::Recalling(past);
                effects.push(Effect::Recall(past));
            }
            _ => self.leave(effects),
        }
    }

    /// Nothing but leaving counts any more.
    pub(super) fn step_leaving(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Recalled { digest, result }
                if self.candidate == Candidate::Recalling(digest) =>
            {
                match result {
                    Ok(()) => {
                        self.candidate = Candidate::Loading(digest);
                        effects.push(Effect::Load(digest));
                    }
                    Err(_) => self.leave(effects),
                }
            }
            Event::Loaded { digest, result } if self.candidate == Candidate::Loading(digest) => {
                if let Ok(facts) = result {
                    self.swap(super::aside(digest, facts), effects);
                }
                self.leave(effects);
            }
            Event::Retry if self.candidate == Candidate::Leaving => effects.push(Effect::Leave),
            Event::Left(result) => self.on_left(result, effects),
            Event::Runs(result) => self.runs = Some(result),
            Event::Deleted => effects.push(Effect::Stop),
            _ => {}
        }
    }

    fn leave(&mut self, effects: &mut Vec<Effect>) {
        if self.before.take().is_some() {
            effects.push(Effect::EndProbation);
        }
        (self.checked, self.retried) = (None, None);
        self.candidate = Candidate::Leaving;
        effects.push(Effect::Leave);
    }

    fn on_left(&mut self, result: Result<String, Verdict>, effects: &mut Vec<Effect>) {
        match result {
            Ok(message) => {
                self.leaving = Some(Ok(()));
                effects.push(Effect::Notify(Notice {
                    type_: EventType::Normal,
                    reason: "FinalizersRemoved".to_owned(),
                    message,
                }));
                effects.push(Effect::LetGo);
            }
            Err(verdict) => {
                if self.leaving != Some(Err(verdict.clone())) {
                    effects.push(warning(&verdict));
                }
                self.leaving = Some(Err(verdict));
                effects.push(Effect::RetryLater);
            }
        }
    }
}
