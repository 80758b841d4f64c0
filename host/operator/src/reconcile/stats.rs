//! What a reconcile changed.

use std::collections::BTreeMap;

use innkeeper_core::ObjectRef;

/// How the host changed an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It created the object.
    Created,
    /// It changed the object.
    Changed,
    /// It deleted the object.
    Deleted,
}

/// What one reconcile changed in all its rounds, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconcileStats {
    /// Objects that were created.
    pub created: usize,
    /// Objects that were changed.
    pub changed: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Desired objects that were in sync.
    pub unchanged: usize,
    /// Whether the status was written.
    pub status: bool,
    /// The reason of the first problem; empty if there is none.
    pub problem: String,
}

impl ReconcileStats {
    /// Counts the changed objects, and of the `up_to_date` desired objects those that were not
    /// changed.
    pub fn count(&mut self, done: &BTreeMap<ObjectRef, ObjectChange>, up_to_date: usize) {
        let count = |change| done.values().filter(|one| **one == change).count();
        self.created = count(ObjectChange::Created);
        self.changed = count(ObjectChange::Changed);
        self.deleted = count(ObjectChange::Deleted);
        self.unchanged = up_to_date.saturating_sub(self.created + self.changed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;
    use innkeeper_core::ObjectKey;

    use super::*;

    #[test]
    fn stats_count_no_written_object_as_unchanged() {
        let kind = Arc::new(Kind::namespaced("v1", "Pod", "pods"));
        let object_ref = |name| ObjectRef::new(kind.clone(), ObjectKey::new("n", name));
        let all = [
            ("a", ObjectChange::Created),
            ("b", ObjectChange::Changed),
            ("c", ObjectChange::Deleted),
        ];
        let all = all.into_iter().map(|(name, change)| (object_ref(name), change)).collect();
        let mut stats = ReconcileStats::default();
        stats.count(&all, 5);
        let found = (stats.created, stats.changed, stats.deleted, stats.unchanged);
        assert_eq!(found, (1, 1, 1, 3));
    }
}
