//! The objects of one cache, found by key, namespace and owner.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use innkeeper_core::{Object, ObjectKey};
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};

use super::owner_index::OwnerIndex;

/// An object, ordered and found by its key.
#[derive(Clone, Debug)]
struct ByKey(Arc<Object>);

impl Borrow<ObjectKey> for ByKey {
    fn borrow(&self) -> &ObjectKey {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

/// The objects that exist, as far as the cache knows. The trees are persistent: a clone is cheap
/// and keeps its content.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveObjects {
    objects: RedBlackTreeSetSync<ByKey>,
    /// The keys of the objects by the uids of their owners, and of primaries that wrote to them.
    owned: OwnerIndex<ObjectKey>,
    /// The keys whose cached state is doubtful, each with the relist during or after which it
    /// became so.
    unknown: RedBlackTreeMapSync<ObjectKey, u64>,
}

impl LiveObjects {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key).map(|found| &found.0)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.iter().map(|found| &found.0)
    }

    pub(super) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        self.objects
            .range::<ObjectKey, _>(ObjectKey::new(namespace, "")..)
            .map(|found| &found.0)
            .take_while(move |object| object.key.namespace() == namespace)
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.owned.keys(uid).filter_map(|key| self.get(key))
    }

    pub(super) fn is_unknown(&self, key: &ObjectKey) -> bool {
        self.unknown.contains_key(key)
    }

    pub(super) fn unknown(&self) -> impl Iterator<Item = &ObjectKey> {
        self.unknown.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.size()
    }

    /// Adds an object in place of the cached one of its key.
    pub(super) fn insert(&mut self, object: Arc<Object>, cached: Option<&Object>) {
        let before = cached.map(Object::owner_and_writer_uids).unwrap_or_default();
        let after = object.owner_and_writer_uids();
        for uid in before.difference(&after) {
            self.owned.remove(uid, &object.key);
        }
        for uid in after.difference(&before) {
            self.owned.insert(uid, &object.key);
        }
        self.unknown.remove_mut(&object.key);
        self.objects.insert_mut(ByKey(object));
    }

    /// Puts an object in place of the same version of it with other fields.
    pub(super) fn replace_text(&mut self, object: Arc<Object>) {
        self.objects.insert_mut(ByKey(object));
    }

    pub(super) fn remove(&mut self, object: &Object) {
        for uid in object.owner_and_writer_uids() {
            self.owned.remove(uid, &object.key);
        }
        self.objects.remove_mut(&object.key);
    }

    /// Marks a key as unknown since a relist.
    pub(super) fn mark_unknown(&mut self, key: &ObjectKey, relist: u64) {
        self.unknown.insert_mut(key.clone(), relist);
    }

    /// Takes the mark off; whether there was one.
    pub(super) fn clear_unknown(&mut self, key: &ObjectKey) -> bool {
        self.unknown.remove_mut(key)
    }

    /// Takes the marks off that are older than a relist.
    pub(super) fn clear_unknown_before(&mut self, relist: u64) {
        let old: Vec<_> = self
            .unknown
            .iter()
            .filter(|(_, since)| **since < relist)
            .map(|(key, _)| key.clone())
            .collect();
        for key in old {
            self.unknown.remove_mut(&key);
        }
    }
}
