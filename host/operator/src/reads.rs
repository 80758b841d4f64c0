//! What runs read, and so which later change concerns which key.
//!
//! Every read of a run is recorded, also "not found" and lists. A change wakes the keys whose
//! last run would have read something else because of it. Keys are found by kind,
//! namespace and name, or by kind, namespace and one label: nothing walks over all keys.
//!
//! A change may come between the moment that a run's snapshot was taken and the moment that
//! its reads are recorded. So the index keeps the changes since the oldest run under way, and
//! compares them when reads are recorded: no change is missed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Key, Object, Selector};

use crate::queue::Work;

/// One read of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// One object by its name, whether it was there or not.
    Get {
        /// Its kind.
        kind: Arc<Kind>,
        /// Its key.
        key: Key,
    },
    /// The objects that match.
    List {
        /// Their kind.
        kind: Arc<Kind>,
        /// Their namespace; empty for all.
        namespace: Box<str>,
        /// The labels that they have.
        selector: Selector,
    },
    /// The objects that this uid owns, made or merged into, of any kind.
    Owned {
        /// The primary's uid.
        uid: Box<str>,
    },
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The object before; `None` if it is new.
    pub before: Option<Arc<Object>>,
    /// The object now; `None` if it is gone.
    pub after: Option<Arc<Object>>,
    /// The key whose own write this is: it knows already.
    pub writer: Option<Work>,
}

impl Change {
    fn versions(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.before.iter().chain(&self.after)
    }

    fn concerns(&self, read: &Read) -> bool {
        match read {
            Read::Get { kind, key } => {
                *kind == self.kind && self.versions().any(|object| object.key == *key)
            }
            Read::List { kind, namespace, selector } => {
                *kind == self.kind
                    && self.versions().any(|object| {
                        (namespace.is_empty() || **namespace == *object.key.namespace())
                            && selector.matches(&object.labels)
                    })
            }
            Read::Owned { uid } => self.versions().any(|object| object.makers().contains(&**uid)),
        }
    }
}

/// A run under way: changes from here on count for it.
#[derive(Debug)]
#[must_use = "a run that began must be recorded or abandoned"]
pub struct Begun {
    from: u64,
}

/// Where a list is looked up: by kind, namespace and one label that it asks for.
type ListPlace = (Arc<Kind>, Box<str>, Option<(Box<str>, Box<str>)>);

/// Who reads one thing, ordered. Mostly it is one key, and there are as many of these as objects.
#[derive(Debug, Default)]
struct Works(Vec<Work>);

impl Works {
    fn insert(&mut self, work: &Work) {
        if let Err(at) = self.0.binary_search(work) {
            self.0.reserve_exact(1);
            self.0.insert(at, work.clone());
        }
    }

    /// Takes a key out; gives whether none is left.
    fn remove(&mut self, work: &Work) -> bool {
        if let Ok(at) = self.0.binary_search(work) {
            self.0.remove(at);
        }
        self.0.is_empty()
    }
}

/// Who read what. See the [module's documentation](self).
#[derive(Debug, Default)]
pub struct Index {
    by_key: BTreeMap<Work, Box<[Read]>>,
    gets: BTreeMap<(Arc<Kind>, Key), Works>,
    lists: BTreeMap<ListPlace, Works>,
    owned: BTreeMap<Box<str>, Works>,
    /// The changes since the oldest run under way; the first has the number `first`.
    log: VecDeque<Arc<Change>>,
    first: u64,
    /// How many runs under way began at each number.
    begun: BTreeMap<u64, usize>,
}

impl Index {
    /// A run begins; to be called before its snapshot is taken.
    pub fn begin(&mut self) -> Begun {
        let from = self.first + self.log.len() as u64;
        *self.begun.entry(from).or_default() += 1;
        Begun { from }
    }

    /// The run ended and read this. Gives whether a change since its begin concerns it, so that
    /// it must run again.
    pub fn record(&mut self, work: &Work, begun: Begun, reads: BTreeSet<Read>) -> bool {
        let skip = usize::try_from(begun.from - self.first).unwrap_or(usize::MAX);
        let missed = self.log.iter().skip(skip).any(|change| {
            change.writer.as_ref() != Some(work) && reads.iter().any(|read| change.concerns(read))
        });
        self.end(begun);
        if self.by_key.get(work).is_none_or(|before| !before.iter().eq(&reads)) {
            self.forget(work);
            for read in &reads {
                self.insert(work, read);
            }
            self.by_key.insert(work.clone(), reads.into_iter().collect());
        }
        missed
    }

    /// The run ended without anything to record.
    pub fn abandon(&mut self, begun: Begun) {
        self.end(begun);
    }

    /// A key reads nothing any more.
    pub fn forget(&mut self, work: &Work) {
        let Some(reads) = self.by_key.remove(work) else { return };
        for read in reads {
            match &read {
                Read::Get { kind, key } => {
                    remove(&mut self.gets, &(kind.clone(), key.clone()), work);
                }
                Read::List { kind, namespace, selector } => {
                    remove(&mut self.lists, &list_place(kind, namespace, selector), work);
                }
                Read::Owned { uid } => remove(&mut self.owned, uid, work),
            }
        }
    }

    /// Forgets all keys of a module.
    pub fn forget_module(&mut self, module: &str) {
        let of_module: Vec<Work> =
            self.by_key.keys().filter(|work| &*work.module == module).cloned().collect();
        for work in of_module {
            self.forget(&work);
        }
    }

    /// Something changed: the keys that it concerns, without its writer.
    pub fn changed(&mut self, change: &Arc<Change>) -> BTreeSet<Work> {
        if !self.begun.is_empty() {
            self.log.push_back(change.clone());
        }
        let mut found = BTreeSet::new();
        for object in change.versions() {
            found.extend(
                self.gets
                    .get(&(change.kind.clone(), object.key.clone()))
                    .into_iter()
                    .flat_map(|works| works.0.iter().cloned()),
            );
            for uid in object.makers() {
                let works = self.owned.get(uid);
                found.extend(works.into_iter().flat_map(|works| works.0.iter().cloned()));
            }
            let labels =
                object.labels.iter().map(|(name, value)| Some((name.into(), value.into())));
            for label in labels.chain([None]) {
                for namespace in [object.key.namespace().into(), Box::default()] {
                    let place = (change.kind.clone(), namespace, label.clone());
                    for work in self.lists.get(&place).into_iter().flat_map(|works| &works.0) {
                        if self.by_key[work].iter().any(|read| change.concerns(read)) {
                            found.insert(work.clone());
                        }
                    }
                }
            }
        }
        if let Some(writer) = &change.writer {
            found.remove(writer);
        }
        found
    }

    fn insert(&mut self, work: &Work, read: &Read) {
        let works = match read {
            Read::Get { kind, key } => self.gets.entry((kind.clone(), key.clone())).or_default(),
            Read::List { kind, namespace, selector } => {
                self.lists.entry(list_place(kind, namespace, selector)).or_default()
            }
            Read::Owned { uid } => self.owned.entry(uid.clone()).or_default(),
        };
        works.insert(work);
    }

    /// Ends a run, and drops the changes that no run under way needs.
    fn end(&mut self, Begun { from }: Begun) {
        if let Some(count) = self.begun.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.begun.remove(&from);
            }
        }
        let end = self.first + self.log.len() as u64;
        let needed_from = self.begun.keys().next().copied().unwrap_or(end);
        let drop = usize::try_from(needed_from - self.first).unwrap_or(self.log.len());
        self.log.drain(..drop);
        self.first = needed_from;
    }
}

fn list_place(kind: &Arc<Kind>, namespace: &str, selector: &Selector) -> ListPlace {
    let label = selector.first_equality().map(|(name, value)| (name.into(), value.into()));
    (kind.clone(), namespace.into(), label)
}

fn remove<K: Ord>(map: &mut BTreeMap<K, Works>, place: &K, work: &Work) {
    if map.get_mut(place).is_some_and(|works| works.remove(work)) {
        map.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(name: &str) -> Arc<Kind> {
        Arc::new(Kind::namespaced("v1", name, ""))
    }

    fn object(name: &str, labels: &serde_json::Value, owner: &str) -> Arc<Object> {
        let text = json!({"metadata": {"name": name, "namespace": "n", "labels": labels,
            "ownerReferences": [{"apiVersion": "v1", "kind": "P", "name": "p", "uid": owner}]}});
        Arc::new(Object::decode(&kind("Pod"), &text.to_string(), None).unwrap())
    }

    fn change(before: Option<Arc<Object>>, after: Option<Arc<Object>>) -> Arc<Change> {
        Arc::new(Change { kind: kind("Pod"), before, after, writer: None })
    }

    fn work(name: &str) -> Work {
        Work { module: "m".into(), key: Key::new("n", name) }
    }

    fn get(name: &str) -> Read {
        Read::Get { kind: kind("Pod"), key: Key::new("n", name) }
    }

    fn list(namespace: &str, selector: &str) -> Read {
        Read::List {
            kind: kind("Pod"),
            namespace: namespace.into(),
            selector: selector.parse().unwrap(),
        }
    }

    fn index(reads: &[(&str, Read)]) -> Index {
        let mut index = Index::default();
        for (name, read) in reads {
            let begun = index.begin();
            assert!(!index.record(&work(name), begun, BTreeSet::from([read.clone()])));
        }
        index
    }

    fn woken(index: &mut Index, change: &Arc<Change>) -> Vec<String> {
        index.changed(change).into_iter().map(|work| work.key.name().into()).collect()
    }

    #[test]
    fn a_name_that_was_read_wakes_its_reader_even_if_it_was_not_there() {
        let mut index = index(&[("a", get("x")), ("b", get("y"))]);
        let created = change(None, Some(object("x", &json!({}), "")));
        assert_eq!(woken(&mut index, &created), ["a"]);
    }

    #[test]
    fn a_list_wakes_when_an_object_comes_changes_or_leaves_it() {
        let mut index = index(&[
            ("here", list("n", "app=web")),
            ("everywhere", list("", "app=web,tier!=db")),
            ("elsewhere", list("other", "app=web")),
            ("all", list("n", "")),
            ("db", list("n", "app=db")),
        ]);
        let web = object("x", &json!({"app": "web"}), "");
        let relabelled = object("x", &json!({"app": "db"}), "");
        assert_eq!(
            woken(&mut index, &change(None, Some(web.clone()))),
            ["all", "everywhere", "here"]
        );
        assert_eq!(
            woken(&mut index, &change(Some(web), Some(relabelled.clone()))),
            ["all", "db", "everywhere", "here"]
        );
        assert_eq!(woken(&mut index, &change(Some(relabelled), None)), ["all", "db"]);
    }

    #[test]
    fn what_a_uid_owns_wakes_whoever_asked_for_it() {
        let mut index = index(&[
            ("a", Read::Owned { uid: "u1".into() }),
            ("b", Read::Owned { uid: "u2".into() }),
        ]);
        assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "u2")))), ["b"]);
    }

    #[test]
    fn a_writer_is_not_woken_by_its_own_write() {
        let mut index = index(&[("a", get("x")), ("b", get("x"))]);
        let mut written = (*change(None, Some(object("x", &json!({}), "")))).clone();
        written.writer = Some(work("a"));
        assert_eq!(woken(&mut index, &Arc::new(written)), ["b"]);
    }

    #[test]
    fn a_change_during_a_run_is_not_missed() {
        let mut index = Index::default();
        let (first, second) = (index.begin(), index.begin());
        assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "")))), [""; 0]);
        let third = index.begin();
        assert!(index.record(&work("a"), first, BTreeSet::from([get("x")])));
        assert!(!index.record(&work("b"), second, BTreeSet::from([get("y")])));
        assert!(!index.record(&work("c"), third, BTreeSet::from([get("x")])));
        assert!(index.log.is_empty(), "no run under way needs it");
    }

    #[test]
    fn the_log_is_kept_only_as_long_as_a_run_needs_it() {
        let mut index = Index::default();
        let long = index.begin();
        for _ in 0..10 {
            let _ = index.changed(&change(None, Some(object("x", &json!({}), ""))));
            let short = index.begin();
            index.abandon(short);
        }
        assert_eq!(index.log.len(), 10);
        index.abandon(long);
        assert_eq!(index.log.len(), 0);
        let _ = index.changed(&change(None, Some(object("x", &json!({}), ""))));
        assert_eq!(index.log.len(), 0);
    }

    #[test]
    fn reads_of_the_last_run_count_only() {
        let mut index = index(&[("a", get("x")), ("a", get("y"))]);
        assert_eq!(woken(&mut index, &change(None, Some(object("x", &json!({}), "")))), [""; 0]);
        assert_eq!(woken(&mut index, &change(None, Some(object("y", &json!({}), "")))), ["a"]);
        index.forget_module("m");
        assert!(index.gets.is_empty() && index.by_key.is_empty());
    }
}
