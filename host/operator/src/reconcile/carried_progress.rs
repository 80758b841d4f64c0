//! What the host keeps of a reconcile that the write rate or a long update interrupted.
//!
//! Such a reconcile continues in later turns, each with a plan of its own. A round is one pass over
//! the plan in one or more turns, and attempts each object once: so an object that the API server
//! refuses, or that changes all the time, neither delays the others nor is sent in each turn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use innkeeper_contract::Event;
use innkeeper_core::ObjectRef;
use innkeeper_core::plan::{Action, Step};

use crate::reconcile::problem::Problem;
use crate::reconcile::stats::ObjectChange;

/// What the rounds of earlier turns have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedProgress {
    /// How many rounds have ended.
    pub count: u32,
    /// Objects that were adopted.
    pub adopted: Vec<ObjectRef>,
    /// Objects that were created, changed or deleted.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
    /// The guest's Events.
    pub events: Vec<Event>,
    /// When the status was reported last.
    pub reported: Option<Duration>,
    /// The generation of the primary, and the most objects of its update groups that have been
    /// updated at the end of a turn for it.
    pub updated_max: Option<(i64, usize)>,
}

/// What earlier turns have done of the round that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedRound {
    /// The generation of the primary; a new one begins a new round.
    pub generation: i64,
    /// Objects that were written or refused.
    pub attempted: BTreeSet<ObjectRef>,
    /// Why objects were refused.
    pub problems: Vec<Problem>,
}

impl CarriedRound {
    /// Begins a new round, if the primary is of another generation than the unfinished one.
    pub fn begin(&mut self, generation: i64) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
    }

    /// Whether a step waits for the next round: this one has attempted its object.
    pub fn postpones(&self, step: &Step) -> bool {
        !matches!(step.action, Action::Skip(_)) && self.attempted.contains(&step.object_ref)
    }

    /// The refusals of objects that the plan would write again.
    pub fn standing<'a>(&'a self, steps: &'a [Step]) -> impl Iterator<Item = &'a Problem> {
        let postponed: BTreeSet<&ObjectRef> =
            steps.iter().filter(|step| self.postpones(step)).map(|step| &step.object_ref).collect();
        self.problems.iter().filter(move |problem| {
            problem.object_ref.as_ref().is_some_and(|object_ref| postponed.contains(object_ref))
        })
    }

    /// Keeps what an interrupted pass has attempted, and why objects of it were refused.
    pub fn interrupt(&mut self, mut attempted: BTreeSet<ObjectRef>, problems: &[Problem]) {
        self.attempted.append(&mut attempted);
        let is_attempted = |problem: &&Problem| {
            problem.object_ref.as_ref().is_some_and(|one| self.attempted.contains(one))
        };
        self.problems = problems.iter().filter(is_attempted).cloned().collect();
    }

    /// Whether a step waits for the next round although its object was not refused.
    pub fn has_postponed(&self, steps: &[Step], problems: &[Problem]) -> bool {
        let refused: BTreeSet<_> =
            problems.iter().filter_map(|problem| problem.object_ref.as_ref()).collect();
        steps.iter().any(|step| self.postpones(step) && !refused.contains(&step.object_ref))
    }
}
