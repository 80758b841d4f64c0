//! Stores objects as texts, and the events of each kind.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::Value;

use crate::apply::managed_object::ManagedObject;
use crate::scratch;
use crate::types::object_key::{Key, KindKey};

/// How many events of one kind are kept for watches that begin in the past.
const HISTORY_MAX: usize = 2000;

/// The number of recently used objects that are also kept as trees: these are most often read next.
/// A tree is ten times as large as its text.
const TREES_MAX: usize = 256;

/// An object as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// With its resourceVersion.
    pub(crate) text: Bytes,
    /// The same as a tree, while it is kept.
    tree: RefCell<Weak<ManagedObject>>,
    /// Keeps the tree alive as long as the object exists.
    held: Option<Arc<ManagedObject>>,
    /// Its number among the kept trees.
    place: Cell<u64>,
}

impl Stored {
    /// An earlier object, which has no kept tree.
    pub(crate) fn past(text: Bytes) -> Self {
        Self { text, tree: RefCell::new(Weak::new()), held: None, place: Cell::new(0) }
    }

    fn kept(&self) -> Option<Arc<ManagedObject>> {
        self.tree.borrow().upgrade()
    }

    fn parsed(&self) -> Arc<ManagedObject> {
        Arc::new(ManagedObject::read(&self.text))
    }

    /// The object as a tree.
    pub(crate) fn object(&self) -> Arc<ManagedObject> {
        self.kept().unwrap_or_else(|| self.parsed())
    }
}

/// The text of a tree.
pub(crate) fn text_of(value: &Value) -> Bytes {
    scratch::text(|out| scratch::json(value, out))
}

/// The trees that are kept, the oldest first.
#[derive(Debug, Default)]
struct Trees {
    kept: RefCell<VecDeque<Option<Arc<ManagedObject>>>>,
    /// The number of dropped trees.
    gone: Cell<u64>,
}

impl Trees {
    /// Returns the tree's number.
    fn keep(&self, tree: Arc<ManagedObject>) -> u64 {
        let mut kept = self.kept.borrow_mut();
        if kept.len() == TREES_MAX {
            kept.pop_front();
            self.gone.set(self.gone.get() + 1);
        }
        kept.push_back(Some(tree));
        self.gone.get() + kept.len() as u64
    }

    /// Drops a tree that no read will ask for.
    fn forget(&self, place: u64) {
        let index = place.checked_sub(self.gone.get() + 1);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let mut kept = self.kept.borrow_mut();
        if let Some(tree) = index.and_then(|index| kept.get_mut(index)) {
            *tree = None;
        }
    }
}

/// How an object changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeType {
    Added,
    Modified,
    Deleted,
}

/// One change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) change: ChangeType,
    pub(crate) key: Key,
    /// The object after it, or as it was last.
    pub(crate) text: Bytes,
    /// The object before it.
    pub(crate) before: Option<Bytes>,
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<Key, Stored>,
    pub(crate) history: VecDeque<Event>,
    /// A watch that begins at or before this version is answered by 410.
    pub(crate) forgotten: u64,
}

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    collections: BTreeMap<KindKey, Collection>,
    trees: Trees,
    version: u64,
    /// Events up to this version are forgotten for every kind, also for kinds that have no object
    /// yet.
    compacted: u64,
    /// Lists at versions before this are answered by 410.
    oldest: u64,
}

impl Store {
    /// An empty one.
    pub(crate) fn new() -> Self {
        // No object is ever at version 1, which clients send to require that the object does not
        // exist.
        Self {
            collections: BTreeMap::new(),
            trees: Trees::default(),
            version: 1,
            compacted: 0,
            oldest: 0,
        }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The objects of a kind, if there were ever any.
    pub(crate) fn collection(&self, kind: &KindKey) -> Option<&Collection> {
        self.collections.get(kind)
    }

    /// Whether there are objects of a kind.
    pub(crate) fn has_any(&self, group: &str, plural: &str) -> bool {
        let mut kinds = self.collections.iter();
        // There are few kinds, and most are not looked at further than their first letter.
        kinds.any(|((of, name), one)| of == group && name == plural && !one.objects.is_empty())
    }

    /// A watch of a kind that begins at or before this version is answered by 410.
    pub(crate) fn forgotten(&self, kind: &KindKey) -> u64 {
        self.collection(kind).map_or(self.compacted, |collection| collection.forgotten)
    }

    /// Every kind with its objects.
    pub(crate) fn collections(&self) -> impl Iterator<Item = (&KindKey, &Collection)> {
        self.collections.iter()
    }

    /// One object.
    pub(crate) fn get(&self, kind: &KindKey, key: &Key) -> Option<&Stored> {
        self.collections.get(kind)?.objects.get(key)
    }

    /// One object as a tree.
    pub(crate) fn object(&self, kind: &KindKey, key: &Key) -> Option<Arc<ManagedObject>> {
        let stored = self.get(kind, key)?;
        if let Some(tree) = stored.kept() {
            return Some(tree);
        }
        let tree = stored.parsed();
        *stored.tree.borrow_mut() = Arc::downgrade(&tree);
        stored.place.set(self.trees.keep(tree.clone()));
        Some(tree)
    }

    /// Stores an object at a new version, which is written into it. Gives it, and the event.
    pub(crate) fn put(
        &mut self,
        kind: &KindKey,
        key: &Key,
        mut object: ManagedObject,
    ) -> (Arc<ManagedObject>, Event) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let text = object.text().clone();
        let tree = Arc::new(object);
        let mut stored = Stored {
            text: text.clone(),
            tree: RefCell::new(Arc::downgrade(&tree)),
            held: None,
            place: Cell::new(0),
        };
        match kind {
            // Each request looks at these, and there are few.
            (group, _) if group == "rbac.authorization.k8s.io" => stored.held = Some(tree.clone()),
            // Events are not read again, and there are many.
            (_, plural) if plural == "events" => {}
            _ => stored.place.set(self.trees.keep(tree.clone())),
        }
        let compacted = self.compacted;
        let collection = self
            .collections
            .entry(kind.clone())
            .or_insert_with(|| Collection { forgotten: compacted, ..Collection::default() });
        let before = collection.objects.insert(key.clone(), stored).map(|before| {
            self.trees.forget(before.place.get());
            before.text
        });
        let change = if before.is_some() { ChangeType::Modified } else { ChangeType::Added };
        let event = Event { version: self.version, change, key: key.clone(), text, before };
        collection.remember(event.clone());
        (tree, event)
    }

    /// Stores an object in another form. It is no write: watches get no event.
    pub(crate) fn reform(&mut self, kind: &KindKey, key: &Key, object: &ManagedObject) {
        let collection = self.collections.get_mut(kind);
        if let Some(stored) = collection.and_then(|one| one.objects.get_mut(key)) {
            stored.text = object.text().clone();
            stored.tree = RefCell::default();
        }
    }

    /// Takes an object away, and writes the version of its deletion into `last`. Gives the event,
    /// which shows the object as it was stored last, at that version.
    pub(crate) fn remove(
        &mut self,
        kind: &KindKey,
        key: &Key,
        last: &mut ManagedObject,
    ) -> Option<Event> {
        let collection = self.collections.get_mut(kind)?;
        let before = collection.objects.remove(key)?;
        self.trees.forget(before.place.get());
        self.version += 1;
        last["metadata"]["resourceVersion"] = self.version.to_string().into();
        let mut stored = Arc::unwrap_or_clone(before.object());
        stored["metadata"]["resourceVersion"] = self.version.to_string().into();
        let event = Event {
            version: self.version,
            change: ChangeType::Deleted,
            key: key.clone(),
            text: stored.text().clone(),
            before: Some(before.text),
        };
        collection.remember(event.clone());
        Some(event)
    }

    /// Forgets the events of a kind so far.
    pub(crate) fn forget(&mut self, kind: &KindKey) {
        if let Some(collection) = self.collections.get_mut(kind) {
            collection.history.clear();
            collection.forgotten = self.version;
        }
    }

    /// The oldest version of lists.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Makes this the oldest version of lists. It takes a version itself, as the API server notes a
    /// compaction down in etcd. Watches are not affected: they begin in the watch cache.
    pub(crate) fn expire(&mut self, version: u64) {
        self.oldest = self.oldest.max(version);
        self.version += 1;
    }

    /// All objects as they are, without events.
    pub(crate) fn objects(&self) -> BTreeMap<KindKey, BTreeMap<Key, Bytes>> {
        let texts = |one: &Collection| {
            one.objects.iter().map(|(key, stored)| (key.clone(), stored.text.clone())).collect()
        };
        self.collections.iter().map(|(kind, one)| (kind.clone(), texts(one))).collect()
    }

    /// A store with these objects at a version, whose earlier events and versions are forgotten.
    pub(crate) fn restored(
        objects: &BTreeMap<KindKey, BTreeMap<Key, Bytes>>,
        version: u64,
    ) -> Self {
        let collection = |texts: &BTreeMap<Key, Bytes>| {
            let stored = texts.iter().map(|(key, text)| (key.clone(), Stored::past(text.clone())));
            Collection { objects: stored.collect(), forgotten: version, ..Collection::default() }
        };
        let collections = objects.iter().map(|(kind, all)| (kind.clone(), collection(all)));
        Self {
            collections: collections.collect(),
            trees: Trees::default(),
            version,
            compacted: version,
            oldest: version,
        }
    }

    /// Forgets all events so far, as a compaction of etcd does.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
        for collection in self.collections.values_mut() {
            collection.history.clear();
            collection.forgotten = self.version;
        }
    }
}

impl Collection {
    fn remember(&mut self, event: Event) {
        self.history.push_back(event);
        if self.history.len() > HISTORY_MAX
            && let Some(oldest) = self.history.pop_front()
        {
            self.forgotten = oldest.version;
        }
    }
}
