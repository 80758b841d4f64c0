//! What work on a key came to.

use std::collections::BTreeMap;

use innkeeper_core::Target;

/// What was done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is there, and was not.
    Created,
    /// It was there, and is otherwise.
    Changed,
    /// It is gone or going.
    Deleted,
}

/// What one reconcile did, of all its rounds; for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
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

impl Deeds {
    /// Of the objects that something was done to, and how many of the wanted are in order in the end.
    pub fn count(&mut self, done: &BTreeMap<Target, Deed>, in_order: usize) {
        let count = |deed| done.values().filter(|one| **one == deed).count();
        self.created = count(Deed::Created);
        self.changed = count(Deed::Changed);
        self.deleted = count(Deed::Deleted);
        self.unchanged = in_order.saturating_sub(self.created + self.changed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;
    use innkeeper_core::Key;

    use super::*;

    #[test]
    fn what_was_written_is_not_unchanged() {
        let kind = Arc::new(Kind::namespaced("v1", "Pod", "pods"));
        let target = |name| Target::new(kind.clone(), Key::new("n", name));
        let all = [("a", Deed::Created), ("b", Deed::Changed), ("c", Deed::Deleted)];
        let all = all.into_iter().map(|(name, deed)| (target(name), deed)).collect();
        let mut deeds = Deeds::default();
        deeds.count(&all, 5);
        let found = (deeds.created, deeds.changed, deeds.deleted, deeds.unchanged);
        assert_eq!(found, (1, 1, 1, 3));
    }
}
