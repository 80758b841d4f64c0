//! How far a scenario has come with its incidents.

use crate::incident::{Incident, PlannedIncident};

/// How many of the planned incidents are over.
#[derive(Default)]
pub(super) struct Progress {
    planned: Vec<Incident>,
    over: usize,
}

impl Progress {
    /// The incidents in the order of their writes.
    pub(super) fn of(planned: &[PlannedIncident]) -> (Self, Vec<u32>) {
        let mut planned: Vec<&PlannedIncident> = planned.iter().collect();
        planned.sort_by_key(|one| one.write);
        let writes = planned.iter().map(|one| one.write).collect();
        (Self { planned: planned.iter().map(|one| one.incident).collect(), over: 0 }, writes)
    }

    /// The next one, if so many have been reached.
    pub(super) fn next(&self, reached: usize) -> Option<Incident> {
        self.planned.get(self.over).copied().filter(|_| self.over < reached)
    }

    /// How many were not reached.
    pub(super) fn left(&self) -> usize {
        self.planned.len() - self.over
    }

    /// The next one is over. Returns how many are.
    pub(super) fn end(&mut self) -> usize {
        self.over += 1;
        self.over
    }
}
