//! What work on a key came to.

use std::collections::BTreeMap;

use innkeeper_core::ObjectRef;

/// What was done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// It is there, and was not.
    Created,
    /// It was there, and is otherwise.
    Changed,
    /// It is gone or going.
    Deleted,
}

/// What one reconcile did, of all its rounds; for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconcileStats {
    /// Objects that were created.
    pub created: usize,
    /// Objects that were changed.
    pub changed: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Wanted objects that were already as they are wanted.
    pub unchanged: usize,
    /// Whether the status was written.
    pub status: bool,
    /// The reason of what stands in the way; empty if nothing does.
    pub problem: String,
}

impl ReconcileStats {
    /// Of the objects that something was done to, and how many of the wanted are in order in the
    /// end.
    pub fn count(&mut self, done: &BTreeMap<ObjectRef, ObjectChange>, in_order: usize) {
        let count = |change| done.values().filter(|one| **one == change).count();
        self.created = count(ObjectChange::Created);
        self.changed = count(ObjectChange::Changed);
        self.deleted = count(ObjectChange::Deleted);
        self.unchanged = in_order.saturating_sub(self.created + self.changed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;
    use innkeeper_core::ObjectKey;

    use super::*;

    #[test]
    fn what_was_written_is_not_unchanged() {
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
