//! The incidents that a scenario plans at writes, and how many of them are completed.

use crate::incident::{Incident, PlannedIncident};

/// The planned incidents in the order of their writes.
#[derive(Default)]
pub(super) struct IncidentSchedule {
    planned: Vec<Incident>,
    completed: usize,
}

impl IncidentSchedule {
    /// The schedule of these incidents, and their writes in the same order.
    pub(super) fn of(planned: &[PlannedIncident]) -> (Self, Vec<u32>) {
        let mut planned: Vec<&PlannedIncident> = planned.iter().collect();
        planned.sort_by_key(|one| one.write);
        let writes = planned.iter().map(|one| one.write).collect();
        (Self { planned: planned.iter().map(|one| one.incident).collect(), completed: 0 }, writes)
    }

    /// The next incident, if the writes have reached it: they have reached the first `reached`.
    pub(super) fn next_due(&self, reached: usize) -> Option<Incident> {
        self.planned.get(self.completed).copied().filter(|_| self.completed < reached)
    }

    /// How many incidents are not completed.
    pub(super) fn remaining(&self) -> usize {
        self.planned.len() - self.completed
    }

    /// Marks the next incident as completed. Returns how many are.
    pub(super) fn complete_next(&mut self) -> usize {
        self.completed += 1;
        self.completed
    }
}
