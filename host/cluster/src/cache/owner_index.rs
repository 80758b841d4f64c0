//! The keys of objects by the uid of an owner.

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

/// An owner with more keys has them in a tree instead of a vector.
const VECTOR_MAX: usize = 16;

/// The keys of objects by the uid of an owner, or of a primary that wrote to the object. Clones
/// share their parts, so a clone and a change of one key copy few of them.
#[derive(Clone, Debug)]
pub(super) struct OwnerIndex<K: Ord>(RedBlackTreeMapSync<Box<str>, OwnedKeys<K>>);

/// The keys of one owner, in order. Most owners have few objects, which a vector holds best; a
/// vector of all objects of a large owner would be copied with each change.
#[derive(Clone, Debug)]
enum OwnedKeys<K: Ord> {
    Few(Vec<K>),
    Many(RedBlackTreeSetSync<K>),
}

impl<K: Ord> Default for OwnerIndex<K> {
    fn default() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }
}

impl<K: Ord + Clone> OwnerIndex<K> {
    /// Adds a key to an owner; a key that the owner has stays.
    pub(super) fn insert(&mut self, uid: &str, key: &K) {
        match self.0.get_mut(uid) {
            Some(keys) => keys.insert(key),
            None => self.0.insert_mut(uid.into(), OwnedKeys::Few(vec![key.clone()])),
        }
    }

    /// Removes a key from an owner.
    pub(super) fn remove(&mut self, uid: &str, key: &K) {
        let Some(keys) = self.0.get_mut(uid) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.0.remove_mut(uid);
        }
    }

    /// The keys of an owner, in order.
    pub(super) fn keys(&self, uid: &str) -> impl Iterator<Item = &K> {
        let (few, many) = match self.0.get(uid) {
            Some(OwnedKeys::Few(keys)) => (Some(keys), None),
            Some(OwnedKeys::Many(keys)) => (None, Some(keys)),
            None => (None, None),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

impl<K: Ord + Clone> OwnedKeys<K> {
    fn insert(&mut self, key: &K) {
        match self {
            Self::Few(keys) => {
                let Err(at) = keys.binary_search(key) else { return };
                keys.insert(at, key.clone());
                if keys.len() > VECTOR_MAX {
                    *self = Self::Many(keys.drain(..).collect());
                }
            }
            Self::Many(keys) => {
                if !keys.contains(key) {
                    keys.insert_mut(key.clone());
                }
            }
        }
    }

    fn remove(&mut self, key: &K) {
        match self {
            Self::Few(keys) => {
                if let Ok(at) = keys.binary_search(key) {
                    keys.remove(at);
                }
            }
            Self::Many(keys) => {
                keys.remove_mut(key);
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(keys) => keys.is_empty(),
            Self::Many(keys) => keys.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts its comparisons and its clones.
    #[derive(Debug, PartialEq, Eq)]
    struct CountedKey(usize);

    fn count() {
        STEPS.set(STEPS.get() + 1);
    }

    impl Clone for CountedKey {
        fn clone(&self) -> Self {
            count();
            Self(self.0)
        }
    }

    impl Ord for CountedKey {
        fn cmp(&self, other: &Self) -> Ordering {
            count();
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for CountedKey {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// The most comparisons and clones of one `change` of a number below `count`, while a snapshot
    /// of the index before the change exists.
    fn most_steps(
        index: &mut OwnerIndex<CountedKey>,
        count: usize,
        change: impl Fn(&mut OwnerIndex<CountedKey>, usize),
    ) -> usize {
        let steps = (0..count).map(|number| {
            let snapshot = index.clone();
            STEPS.set(0);
            change(index, number);
            let steps = STEPS.get();
            drop(snapshot);
            steps
        });
        steps.max().unwrap_or_default()
    }

    #[test]
    fn change_of_one_of_100_000_keys_of_an_owner_takes_few_steps() {
        const COUNT: usize = 100_000;
        let mut index = OwnerIndex::default();
        let insert = |index: &mut OwnerIndex<_>, n| index.insert("uid", &CountedKey(n));
        // The tree has at most 34 levels, and a change walks down it at most three times.
        let inserted = most_steps(&mut index, COUNT, insert);
        assert!(inserted <= 120, "{inserted} steps");
        assert!(index.keys("uid").map(|key| key.0).eq(0..COUNT));
        let again = most_steps(&mut index, COUNT, insert);
        assert!(again <= 40, "{again} steps");
        let removed = most_steps(&mut index, COUNT, |index, n| index.remove("uid", &CountedKey(n)));
        assert!(removed <= 120, "{removed} steps");
        assert_eq!(index.keys("uid").count(), 0);
    }

    #[test]
    fn change_of_an_owner_with_few_keys_copies_those_alone() {
        let mut index = OwnerIndex::default();
        // 1,000 owners with four keys each.
        let uid = |n: usize| format!("uid-{}", n / 4);
        let steps = most_steps(&mut index, 4_000, |index, n| index.insert(&uid(n), &CountedKey(n)));
        assert!(steps <= 8, "{steps} steps");
        assert!(index.keys("uid-7").map(|key| key.0).eq(28..32));
    }

    #[test]
    fn keys_are_ordered_and_unique_for_any_number_of_them() {
        for count in [1, VECTOR_MAX, VECTOR_MAX + 1, 100] {
            let mut index = OwnerIndex::default();
            for number in (0..count).rev().chain(0..count) {
                index.insert("uid", &number);
            }
            assert!(index.keys("uid").copied().eq(0..count), "{count}");
            index.remove("uid", &0);
            index.remove("uid", &count);
            assert!(index.keys("uid").copied().eq(1..count), "{count}");
            assert_eq!(index.keys("other").count(), 0);
        }
    }
}
