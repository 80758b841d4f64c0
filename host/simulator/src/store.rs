//! What is stored: objects as texts, and what happened to them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::Value;

/// How many events of one kind are kept for watches that begin in the past.
const HISTORY_MAX: usize = 2000;

/// The kind of an object, whatever its version: group and plural.
pub(crate) type KindKey = (String, String);

/// Where an object lies within its kind: namespace and name.
pub(crate) type Key = (String, String);

/// An object as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// With its resourceVersion.
    pub(crate) text: Bytes,
}

impl Stored {
    /// The object as a tree.
    pub(crate) fn object(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Added,
    Modified,
    Deleted,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) happened: Happened,
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
    /// Watches that begin at or before this version are told to list again.
    pub(crate) forgotten: u64,
}

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    collections: BTreeMap<KindKey, Collection>,
    version: u64,
}

impl Store {
    /// An empty one.
    pub(crate) fn new() -> Self {
        // No object is ever at version 1, which clients give to say that nothing must be there.
        Self { collections: BTreeMap::new(), version: 1 }
    }

    /// The version of the last write.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The objects of a kind, if there were ever any.
    pub(crate) fn collection(&self, kind: &KindKey) -> Option<&Collection> {
        self.collections.get(kind)
    }

    /// Every kind with its objects.
    pub(crate) fn collections(&self) -> impl Iterator<Item = (&KindKey, &Collection)> {
        self.collections.iter()
    }

    /// One object.
    pub(crate) fn get(&self, kind: &KindKey, key: &Key) -> Option<&Stored> {
        self.collections.get(kind)?.objects.get(key)
    }

    /// Stores an object at a new version, which is written into it. Gives the event.
    pub(crate) fn put(&mut self, kind: &KindKey, key: &Key, object: &mut Value) -> Event {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let text = Bytes::from(object.to_string());
        let stored = Stored { text: text.clone() };
        let collection = self.collections.entry(kind.clone()).or_default();
        let before = collection.objects.insert(key.clone(), stored).map(|stored| stored.text);
        let happened = if before.is_some() { Happened::Modified } else { Happened::Added };
        let event = Event { version: self.version, happened, key: key.clone(), text, before };
        collection.remember(event.clone());
        event
    }

    /// Stores an object in another form, which is no write: nobody is told.
    pub(crate) fn reform(&mut self, kind: &KindKey, key: &Key, object: &Value) {
        let collection = self.collections.get_mut(kind);
        if let Some(stored) = collection.and_then(|one| one.objects.get_mut(key)) {
            stored.text = Bytes::from(object.to_string());
        }
    }

    /// Takes an object away, and writes the version of its deletion into `last`. Gives the event, which shows the object
    /// as it was stored last, at that version.
    pub(crate) fn remove(&mut self, kind: &KindKey, key: &Key, last: &mut Value) -> Option<Event> {
        let collection = self.collections.get_mut(kind)?;
        let before = collection.objects.remove(key)?;
        self.version += 1;
        last["metadata"]["resourceVersion"] = self.version.to_string().into();
        let mut stored = before.object();
        stored["metadata"]["resourceVersion"] = self.version.to_string().into();
        let event = Event {
            version: self.version,
            happened: Happened::Deleted,
            key: key.clone(),
            text: Bytes::from(stored.to_string()),
            before: Some(before.text),
        };
        collection.remember(event.clone());
        Some(event)
    }

    /// Forgets what happened so far, as etcd does from time to time.
    pub(crate) fn compact(&mut self) {
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
