//! What runs read, and so which later change concerns which key.
//!
//! Every read of a run is recorded, also "not found" and lists. A change wakes the keys whose
//! last run would have read something else because of it. Keys are found by kind,
//! namespace and name, or by kind, namespace and one label: nothing walks over all keys.
//!
//! A change may come between the moment that a run's snapshot was taken and the moment that
//! its reads are recorded. So the index keeps the changes since the oldest run under way, and
//! compares them when reads are recorded: no change is missed.
//!
//! # Bounds
//! Whatever is bounded here may wake a key too often, never too seldom.
//! - A run's record is bounded by [`crate::record`], and all records of a module by a limit of its
//!   Module: beyond it a record that is not small becomes that of a reader of whole kinds.
//! - For one change at most [`COMPARISONS_MAX`] comparisons are made for each module. Readers of whole
//!   namespaces or kinds are woken without any.
//! - The changes that are kept for runs under way are bounded in number and bytes: a run that began
//!   before the first of them runs again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Key, Labels, Object, Selector};

use crate::queue::Work;
pub use crate::record::Read;
use crate::record::{Budget, ReadRecord, SMALL_RECORD_BYTES};

/// Comparisons of labels with selectors: for one change and one module, and for one record with all
/// changes that came during its run.
pub const COMPARISONS_MAX: usize = 8_192;

/// Changes that are kept for runs under way.
const LOG_MAX: usize = 4_096;

/// Bytes of the objects of these changes.
const LOG_BYTES_MAX: usize = 32 << 20;

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

    fn bytes(&self) -> usize {
        self.versions().map(|object| object.bytes()).sum()
    }
}

/// A run under way: changes from here on count for it.
#[derive(Debug)]
#[must_use = "a run that began must be recorded or abandoned"]
pub struct Begun {
    from: u64,
}

/// An ordered set. Mostly it has one member, and there are as many of these as objects: so it
/// becomes a tree only when it is large.
#[derive(Debug)]
enum SmallSet<T> {
    Few(Vec<T>),
    Many(BTreeSet<T>),
}

/// A [`SmallSet::Few`] has so many members at most.
const FEW_MAX: usize = 32;

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    fn insert(&mut self, member: T) {
        match self {
            Self::Few(few) => {
                let Err(at) = few.binary_search(&member) else { return };
                few.reserve_exact(1);
                few.insert(at, member);
                if few.len() > FEW_MAX {
                    *self = Self::Many(std::mem::take(few).into_iter().collect());
                }
            }
            Self::Many(many) => {
                many.insert(member);
            }
        }
    }

    /// Takes a member out; gives whether none is left.
    fn remove(&mut self, member: &T) -> bool {
        match self {
            Self::Few(few) => {
                if let Ok(at) = few.binary_search(member) {
                    few.remove(at);
                }
                few.is_empty()
            }
            Self::Many(many) => {
                many.remove(member);
                many.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

/// Who listed with which selector.
type Selecting = SmallSet<(Work, Arc<Selector>)>;

/// Who listed objects of one kind in one namespace, or in all.
#[derive(Debug, Default)]
struct Lists {
    /// All of them.
    whole: SmallSet<Work>,
    /// By a label's name and value, those whose selector asks for it.
    labelled: BTreeMap<Box<str>, BTreeMap<Box<str>, Selecting>>,
    /// Those whose selector asks for no one value.
    others: Selecting,
}

impl Lists {
    fn insert(&mut self, work: &Work, selector: &Arc<Selector>) {
        if selector.is_everything() {
            self.whole.insert(work.clone());
            return;
        }
        let selecting = match selector.first_equality() {
            None => &mut self.others,
            Some((name, value)) => {
                self.labelled.entry(name.into()).or_default().entry(value.into()).or_default()
            }
        };
        selecting.insert((work.clone(), selector.clone()));
    }

    /// Takes a list out; gives whether none is left.
    fn remove(&mut self, work: &Work, selector: &Arc<Selector>) -> bool {
        if selector.is_everything() {
            self.whole.remove(work);
        } else if let Some((name, value)) = selector.first_equality() {
            let reader = (work.clone(), selector.clone());
            if let Some(values) = self.labelled.get_mut(name) {
                if values.get_mut(value).is_some_and(|selecting| selecting.remove(&reader)) {
                    values.remove(value);
                }
                if values.is_empty() {
                    self.labelled.remove(name);
                }
            }
        } else {
            self.others.remove(&(work.clone(), selector.clone()));
        }
        self.labelled.is_empty()
            && self.whole.iter().next().is_none()
            && self.others.iter().next().is_none()
    }

    /// Those that may select an object with these labels. Walks over the labels or over the names
    /// that are asked for, whichever are fewer.
    fn selecting<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = &'a Selecting> {
        let walks_labels = labels.len() <= self.labelled.len();
        let by_label = labels
            .iter()
            .take_while(move |_| walks_labels)
            .filter_map(|(name, value)| self.labelled.get(name)?.get(value));
        let by_name = self
            .labelled
            .iter()
            .take_while(move |_| !walks_labels)
            .filter_map(|(name, values)| values.get(labels.get(name)?));
        by_label.chain(by_name).chain([&self.others])
    }
}

/// Who read what. See the [module's documentation](self).
#[derive(Debug, Default)]
pub struct Index {
    by_key: BTreeMap<Work, Box<[Read]>>,
    gets: BTreeMap<(Arc<Kind>, Key), SmallSet<Work>>,
    lists: BTreeMap<Arc<Kind>, BTreeMap<Box<str>, Lists>>,
    owned: BTreeMap<Box<str>, SmallSet<Work>>,
    /// Bytes of the records of each module.
    bytes: BTreeMap<Arc<str>, usize>,
    /// The changes since the oldest run under way; the first has the number `first`.
    log: VecDeque<Arc<Change>>,
    log_bytes: usize,
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
    /// it must run again. The records of its module may take `bytes_max`.
    pub fn record(
        &mut self,
        work: &Work,
        begun: Begun,
        mut record: ReadRecord,
        bytes_max: usize,
    ) -> bool {
        let is_missed = self.has_missed(work, &begun, &record);
        self.end(begun);
        let of_others = self.bytes_of(&work.module).saturating_sub(self.bytes_of_key(work));
        if record.bytes() > SMALL_RECORD_BYTES && of_others + record.bytes() > bytes_max {
            record.make_small();
        }
        let reads = record.into_reads();
        if self.by_key.get(work).is_none_or(|before| *before != reads) {
            self.forget(work);
            for read in &reads {
                self.insert(work, read);
            }
            let bytes: usize = reads.iter().map(Read::bytes).sum();
            *self.bytes.entry(work.module.clone()).or_default() += bytes;
            self.by_key.insert(work.clone(), reads);
        }
        is_missed
    }

    /// The run ended without anything to record.
    pub fn abandon(&mut self, begun: Begun) {
        self.end(begun);
    }

    /// A key reads nothing any more.
    pub fn forget(&mut self, work: &Work) {
        let Some(reads) = self.by_key.remove(work) else { return };
        for read in &reads {
            match read {
                Read::Get { kind, key } => {
                    remove(&mut self.gets, &(kind.clone(), key.clone()), work);
                }
                Read::List { kind, namespace, selector } => {
                    let Some(of_kind) = self.lists.get_mut(kind) else { continue };
                    if of_kind.get_mut(namespace).is_some_and(|lists| lists.remove(work, selector))
                    {
                        of_kind.remove(namespace);
                    }
                    if of_kind.is_empty() {
                        self.lists.remove(kind);
                    }
                }
                Read::Owned { uid } => remove(&mut self.owned, uid, work),
            }
        }
        let bytes: usize = reads.iter().map(Read::bytes).sum();
        if let Some(of_module) = self.bytes.get_mut(&work.module) {
            *of_module = of_module.saturating_sub(bytes);
            if *of_module == 0 {
                self.bytes.remove(&work.module);
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

    /// About how many bytes the records of each module take.
    pub fn bytes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.bytes.iter().map(|(module, bytes)| (&**module, *bytes))
    }

    /// Something changed: the keys that it concerns, without its writer.
    pub fn changed(&mut self, change: &Arc<Change>) -> BTreeSet<Work> {
        self.log(change);
        let mut found = BTreeSet::new();
        for object in change.versions() {
            let gets = self.gets.get(&(change.kind.clone(), object.key.clone()));
            found.extend(gets.into_iter().flat_map(SmallSet::iter).cloned());
            for uid in object.makers() {
                found.extend(self.owned.get(uid).into_iter().flat_map(SmallSet::iter).cloned());
            }
        }
        self.add_listing(change, &mut found);
        if let Some(writer) = &change.writer {
            found.remove(writer);
        }
        found
    }

    /// Adds the keys that listed a changed object.
    fn add_listing(&self, change: &Change, found: &mut BTreeSet<Work>) {
        let Some(of_kind) = self.lists.get(&change.kind) else { return };
        let mut budgets = Budgets::default();
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        // Selectors see labels only: a version with the same ones says nothing new.
        let before =
            before.filter(|before| after.is_none_or(|after| after.labels != before.labels));
        let key = change.versions().next().map(|object| &object.key);
        let Some(namespace) = key.map(Key::namespace) else { return };
        let namespaces = [namespace, ""];
        let namespaces = if namespace.is_empty() { &namespaces[..1] } else { &namespaces };
        for lists in namespaces.iter().filter_map(|namespace| of_kind.get(*namespace)) {
            found.extend(lists.whole.iter().cloned());
            for object in before.into_iter().chain(after) {
                for (work, selector) in lists.selecting(&object.labels).flat_map(SmallSet::iter) {
                    if budgets.of(&work.module).matches(selector, &object.labels) {
                        found.insert(work.clone());
                    }
                }
            }
        }
    }

    /// Whether a change since the begin of a run concerns it, or may.
    fn has_missed(&self, work: &Work, begun: &Begun, record: &ReadRecord) -> bool {
        let Some(skip) = begun.from.checked_sub(self.first) else { return true };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let mut budget = Budget(COMPARISONS_MAX);
        self.log.iter().skip(skip).any(|change| {
            change.writer.as_ref() != Some(work)
                && change
                    .versions()
                    .any(|object| record.concerns(&change.kind, object, &mut budget))
        })
    }

    /// Keeps a change for the runs under way.
    fn log(&mut self, change: &Arc<Change>) {
        if self.begun.is_empty() {
            return;
        }
        self.log.push_back(change.clone());
        self.log_bytes += change.bytes();
        while self.log.len() > LOG_MAX || self.log_bytes > LOG_BYTES_MAX {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.log_bytes -= change.bytes();
            self.first += 1;
        }
    }

    fn bytes_of(&self, module: &str) -> usize {
        self.bytes.get(module).copied().unwrap_or(0)
    }

    fn bytes_of_key(&self, work: &Work) -> usize {
        self.by_key.get(work).map_or(0, |reads| reads.iter().map(Read::bytes).sum())
    }

    fn insert(&mut self, work: &Work, read: &Read) {
        match read {
            Read::Get { kind, key } => {
                self.gets.entry((kind.clone(), key.clone())).or_default().insert(work.clone());
            }
            Read::List { kind, namespace, selector } => {
                let of_kind = self.lists.entry(kind.clone()).or_default();
                of_kind.entry(namespace.clone()).or_default().insert(work, selector);
            }
            Read::Owned { uid } => {
                self.owned.entry(uid.clone()).or_default().insert(work.clone());
            }
        }
    }

    /// Ends a run, and drops the changes that no run under way needs.
    fn end(&mut self, Begun { from }: Begun) {
        if let Some(count) = self.begun.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.begun.remove(&from);
            }
        }
        let needed_from = self.begun.keys().next().copied().unwrap_or(u64::MAX);
        while self.first < needed_from && !self.log.is_empty() {
            self.drop_first();
        }
    }
}

/// What each module may still have compared for one change.
#[derive(Default)]
struct Budgets<'a> {
    by_module: BTreeMap<&'a str, Budget>,
}

impl<'a> Budgets<'a> {
    fn of(&mut self, module: &'a str) -> &mut Budget {
        self.by_module.entry(module).or_insert(Budget(COMPARISONS_MAX))
    }
}

fn remove<K: Ord>(map: &mut BTreeMap<K, SmallSet<Work>>, place: &K, work: &Work) {
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
            selector: Arc::new(selector.parse().unwrap()),
        }
    }

    /// A limit that nothing reaches.
    const ALL: usize = usize::MAX;

    fn record(read: &Read) -> ReadRecord {
        let mut record = ReadRecord::default();
        match read {
            Read::Get { kind, key } => record.get(kind, key),
            Read::List { kind, namespace, selector } => {
                record.list(kind, namespace, (**selector).clone());
            }
            Read::Owned { uid } => record.owned(uid),
        }
        record
    }

    fn index(reads: &[(&str, Read)]) -> Index {
        let mut index = Index::default();
        for (name, read) in reads {
            let begun = index.begin();
            assert!(!index.record(&work(name), begun, record(read), ALL));
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
        assert!(index.record(&work("a"), first, record(&get("x")), ALL));
        assert!(!index.record(&work("b"), second, record(&get("y")), ALL));
        assert!(!index.record(&work("c"), third, record(&get("x")), ALL));
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

    /// A record of this many names in a namespace, which it does not list.
    fn names(count: usize) -> ReadRecord {
        let mut record = ReadRecord::default();
        for number in 0..count {
            record.get(&kind("Pod"), &Key::new("n", &format!("p{number}")));
        }
        record
    }

    fn bytes(index: &Index) -> usize {
        index.bytes().map(|(_, bytes)| bytes).sum()
    }

    #[test]
    fn records_beyond_the_bytes_of_the_module_become_whole_kinds() {
        let mut index = Index::default();
        for number in 0..100 {
            let begun = index.begin();
            index.record(&work(&format!("w{number:02}")), begun, names(500), 1 << 20);
        }
        let small = 100 * SMALL_RECORD_BYTES;
        assert!(bytes(&index) < (1 << 20) + small, "{}", bytes(&index));
        // One that is small is kept as it is, of the same module and of another.
        let begun = index.begin();
        index.record(&work("small"), begun, record(&get("p0")), 1 << 20);
        let other = Work { module: "other".into(), key: Key::new("n", "other") };
        let begun = index.begin();
        index.record(&other, begun, names(500), 1 << 20);
        let unread = change(None, Some(object("unread", &json!({}), "")));
        let woken = woken(&mut index, &unread);
        assert!(!woken.contains(&"small".to_owned()) && !woken.contains(&"other".to_owned()));
        assert!(woken.len() >= 90, "{}", woken.len());
        index.forget_module("m");
        index.forget_module("other");
        assert_eq!(bytes(&index), 0);
        assert!(index.gets.is_empty() && index.lists.is_empty() && index.bytes.is_empty());
    }

    #[test]
    fn a_record_that_takes_the_place_of_another_counts_once() {
        let mut index = Index::default();
        for _ in 0..100 {
            for count in [500, 499] {
                let begun = index.begin();
                index.record(&work("a"), begun, names(count), 200_000);
            }
        }
        assert_eq!(bytes(&index), names(499).bytes());
    }

    #[test]
    fn selectors_beyond_the_comparisons_of_a_module_wake_their_readers() {
        let mut index = Index::default();
        // Each reader has 16 selectors that ask for no one value and match nothing.
        let selectors: Vec<_> = (0..16).map(|number| format!("a{number},b,c,d,e,f,g")).collect();
        for reader in 0..3_000 {
            let mut record = ReadRecord::default();
            for selector in &selectors {
                record.list(&kind("Pod"), "n", selector.parse().unwrap());
            }
            let begun = index.begin();
            index.record(&work(&format!("w{reader:04}")), begun, record, ALL);
        }
        let calm = Work { module: "calm".into(), key: Key::new("n", "calm") };
        let begun = index.begin();
        index.record(&calm, begun, record(&list("n", "zone,!old")), ALL);
        let woken = woken(&mut index, &change(None, Some(object("x", &json!({}), ""))));
        let exact = COMPARISONS_MAX / (16 * 8);
        assert_eq!(woken.len(), 3_000 - exact, "those beyond the limit are woken");
        assert!(
            !woken.contains(&"calm".to_owned()),
            "the comparisons of another module are its own"
        );
    }

    #[test]
    fn an_object_with_thousands_of_labels_wakes_those_that_ask_for_one() {
        let mut index = index(&[
            ("a", list("n", "l4000=v,l1")),
            ("b", list("", "l4999=v")),
            ("c", list("n", "l4000=w")),
            ("d", list("n", "other=v")),
        ]);
        let labels: serde_json::Map<_, _> =
            (0..5_000).map(|number| (format!("l{number}"), json!("v"))).collect();
        let object = object("x", &json!(labels), "");
        assert_eq!(woken(&mut index, &change(None, Some(object.clone()))), ["a", "b"]);
        assert_eq!(woken(&mut index, &change(Some(object), None)), ["a", "b"]);
    }

    #[test]
    fn a_run_that_spans_more_changes_than_are_kept_runs_again() {
        let mut index = Index::default();
        let (long, other) = (index.begin(), index.begin());
        for _ in 0..=LOG_MAX {
            let _ = index.changed(&change(None, Some(object("x", &json!({}), ""))));
        }
        assert_eq!(index.log.len(), LOG_MAX);
        let short = index.begin();
        assert!(!index.record(&work("a"), short, record(&get("y")), ALL));
        assert!(index.record(&work("b"), long, record(&get("y")), ALL));
        index.abandon(other);
        assert_eq!((index.log.len(), index.log_bytes), (0, 0));
        let next = index.begin();
        assert!(!index.record(&work("b"), next, record(&get("y")), ALL));
    }

    #[test]
    fn changes_of_large_objects_are_kept_up_to_their_bytes() {
        let mut index = Index::default();
        let run = index.begin();
        let large = json!({"a": "x".repeat(1 << 20)});
        let large = change(None, Some(object("x", &large, "")));
        for _ in 0..100 {
            let _ = index.changed(&large);
        }
        assert!(index.log_bytes <= LOG_BYTES_MAX && !index.log.is_empty());
        assert!(index.record(&work("a"), run, record(&get("y")), ALL), "some were dropped");
        assert_eq!((index.log.len(), index.log_bytes), (0, 0));
    }

    #[test]
    fn a_set_of_many_members_is_as_one_of_few() {
        let mut set = SmallSet::default();
        for number in (0..100).rev().chain(0..100) {
            set.insert(number);
        }
        assert!(set.iter().copied().eq(0..100));
        for number in 0..99 {
            assert!(!set.remove(&number));
        }
        assert!(set.remove(&99) && set.remove(&99));
    }
}
