//! The reads of one run, in a bounded number of bytes.
//!
//! A record may cover more than the run read, never less: a run that reads too much to be recorded
//! exactly is recorded as a reader of whole namespaces or whole kinds, and more changes wake it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey, Selector};

use crate::watch::read_scope::ReadScope;

/// The bytes of the record of one run. Of a larger record, the reads of the kinds that take the
/// most become whole namespaces, or the whole kind if there are many.
pub const RECORD_BYTES_MAX: usize = 256 << 10;

/// A record of this many bytes stays exact, also when the module's records exceed their bytes.
pub const SMALL_RECORD_BYTES: usize = 4 << 10;

/// The selectors of one kind in one namespace; more become the whole namespace.
pub const SELECTORS_MAX: usize = 16;

/// The greatest [`Selector::weight`]; a heavier selector becomes the whole namespace.
pub const SELECTOR_WEIGHT_MAX: usize = 32;

/// This many namespaces of a kind become whole one by one; with more, the kind becomes whole.
const NAMESPACES_MAX: usize = 16;

/// The bytes to which a record is reduced that became too large.
const CUT_BYTES: usize = RECORD_BYTES_MAX / 4 * 3;

// The bytes of a read in the record and in the index, without its texts.
const GET_BYTES: usize = 200;
const LIST_BYTES: usize = 400;
const OWNED_BYTES: usize = 250;

/// One read of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// One object by its name, found or not.
    Get {
        /// Its kind.
        kind: Arc<Kind>,
        /// Its key.
        key: ObjectKey,
    },
    /// A list.
    List {
        /// The kind of the listed objects.
        kind: Arc<Kind>,
        /// The namespace of the listed objects; empty for all.
        namespace: Box<str>,
        /// The label selector.
        selector: Arc<Selector>,
    },
    /// The objects of any kind that a primary owns or is merged into.
    Owned {
        /// The primary's uid.
        uid: Box<str>,
        /// The namespace of the objects; empty for all.
        namespace: Box<str>,
    },
}

impl Read {
    /// The approximate bytes of memory until the next run.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Get { key, .. } => get_bytes(key),
            Self::List { namespace, selector, .. } => list_bytes(namespace, selector),
            Self::Owned { uid, namespace } => OWNED_BYTES + uid.len() + namespace.len(),
        }
    }
}

fn get_bytes(key: &ObjectKey) -> usize {
    GET_BYTES + key.namespace().len() + key.name().len()
}

fn list_bytes(namespace: &str, selector: &Selector) -> usize {
    LIST_BYTES + 2 * namespace.len() + selector.bytes()
}

/// The comparisons that may still be made. Without any left, every read counts as concerned.
#[derive(Debug)]
pub struct Budget(pub usize);

impl Budget {
    /// Whether a selector matches labels; true if no comparison is left.
    pub fn matches(&mut self, selector: &Selector, labels: &innkeeper_core::Labels) -> bool {
        let cost = selector.weight() + 1;
        if self.0 < cost {
            return true;
        }
        self.0 -= cost;
        selector.matches(labels)
    }
}

/// The reads of one run. See the [module's documentation](self).
#[derive(Debug, Default)]
pub struct ReadRecord {
    kinds: BTreeMap<Arc<Kind>, KindReads>,
    /// The namespace, by the owner's uid.
    owned: BTreeMap<Box<str>, Box<str>>,
    bytes: usize,
    scope: ReadScope,
}

/// Reads of one kind by namespace; the empty namespace is that of lists over all namespaces.
#[derive(Debug, Default)]
struct KindReads(BTreeMap<Box<str>, NamespaceReads>);

#[derive(Debug, Default)]
struct NamespaceReads {
    /// Whether all objects count as read; then the other members are empty.
    is_whole: bool,
    names: BTreeSet<ObjectKey>,
    selectors: BTreeSet<Arc<Selector>>,
}

impl ReadRecord {
    /// Sets which fields the run could read; every field by default.
    #[must_use]
    pub fn within(self, scope: ReadScope) -> Self {
        Self { scope, ..self }
    }

    /// Takes which fields the run could read.
    pub fn take_scope(&mut self) -> ReadScope {
        std::mem::take(&mut self.scope)
    }

    /// Records the read of an object by its name.
    pub fn get(&mut self, kind: &Arc<Kind>, key: &ObjectKey) {
        let namespace = key.namespace();
        let Some(group) = self.group(kind, namespace) else { return };
        if group.names.insert(key.clone()) {
            self.bytes += get_bytes(key);
            self.cut();
        }
    }

    /// Records a list; `namespace` is empty for all.
    pub fn list(&mut self, kind: &Arc<Kind>, namespace: &str, selector: Selector) {
        // A cluster-scoped object is in no namespace, whichever one the guest asked for.
        let namespace = if kind.is_namespaced() { namespace } else { "" };
        let Some(group) = self.group(kind, namespace) else { return };
        let is_whole = selector.is_everything()
            || selector.weight() > SELECTOR_WEIGHT_MAX
            || (group.selectors.len() >= SELECTORS_MAX && !group.selectors.contains(&selector));
        if is_whole {
            self.make_whole(kind, namespace);
        } else {
            let bytes = list_bytes(namespace, &selector);
            if group.selectors.insert(Arc::new(selector)) {
                self.bytes += bytes;
            }
        }
        self.cut();
    }

    /// Records the read of the objects of an owner; `namespace` is empty for all.
    pub fn owned(&mut self, uid: &str, namespace: &str) {
        if self.owned.insert(uid.into(), namespace.into()).is_none() {
            self.bytes += OWNED_BYTES + uid.len() + namespace.len();
        }
    }

    /// The approximate bytes of memory until the next run.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes every kind whole, so that the record is small.
    pub fn make_small(&mut self) {
        let kinds: Vec<_> = self.kinds.keys().cloned().collect();
        for kind in kinds {
            self.make_whole(&kind, "");
        }
    }

    /// Whether a change concerns the run: it read the object in one of these versions.
    pub fn concerns(&self, kind: &Arc<Kind>, object: &Object, budget: &mut Budget) -> bool {
        let here = object.key.namespace();
        let is_here = |within: &str| within.is_empty() || within == here;
        if object
            .owner_and_writer_uids()
            .iter()
            .any(|uid| self.owned.get(*uid).is_some_and(|within| is_here(within)))
        {
            return true;
        }
        let Some(of_kind) = self.kinds.get(kind) else { return false };
        let mut is_read = |namespace: &str| {
            of_kind.0.get(namespace).is_some_and(|group| {
                group.is_whole
                    || group.names.contains(&object.key)
                    || group.selectors.iter().any(|one| budget.matches(one, &object.labels))
            })
        };
        let namespace = object.key.namespace();
        is_read(namespace) || (!namespace.is_empty() && is_read(""))
    }

    /// The reads, ordered.
    pub fn into_reads(self) -> Box<[Read]> {
        let mut reads = Vec::new();
        for (kind, of_kind) in self.kinds {
            for (namespace, group) in of_kind.0 {
                let whole = group.is_whole.then(Arc::default);
                for key in group.names {
                    reads.push(Read::Get { kind: kind.clone(), key });
                }
                for selector in whole.into_iter().chain(group.selectors) {
                    let (kind, namespace) = (kind.clone(), namespace.clone());
                    reads.push(Read::List { kind, namespace, selector });
                }
            }
        }
        reads.extend(self.owned.into_iter().map(|(uid, namespace)| Read::Owned { uid, namespace }));
        reads.into()
    }

    /// The group for a read; `None` if the record covers it already.
    fn group(&mut self, kind: &Arc<Kind>, namespace: &str) -> Option<&mut NamespaceReads> {
        if !self.kinds.contains_key(kind) {
            self.kinds.insert(kind.clone(), KindReads::default());
        }
        let groups = &mut self.kinds.get_mut(kind)?.0;
        if groups.get("").is_some_and(|group| group.is_whole) {
            return None;
        }
        if !groups.contains_key(namespace) {
            groups.insert(namespace.into(), NamespaceReads::default());
        }
        groups.get_mut(namespace).filter(|group| !group.is_whole)
    }

    /// Has all objects of a namespace count as read; those of all namespaces if it is empty.
    fn make_whole(&mut self, kind: &Arc<Kind>, namespace: &str) {
        let Some(KindReads(groups)) = self.kinds.get_mut(kind) else { return };
        let gone = if namespace.is_empty() {
            std::mem::take(groups)
        } else {
            groups.remove_entry(namespace).into_iter().collect()
        };
        let gone: usize = gone.iter().map(|(namespace, group)| group.bytes(namespace)).sum();
        let whole = NamespaceReads { is_whole: true, ..NamespaceReads::default() };
        self.bytes = self.bytes.saturating_sub(gone) + whole.bytes(namespace);
        groups.insert(namespace.into(), whole);
    }

    /// Makes the largest groups whole if the record is too large.
    fn cut(&mut self) {
        if self.bytes <= RECORD_BYTES_MAX {
            return;
        }
        while self.bytes > CUT_BYTES {
            let largest = self
                .kinds
                .iter()
                .filter(|(_, KindReads(groups))| groups.get("").is_none_or(|group| !group.is_whole))
                .max_by_key(|(_, of_kind)| of_kind.bytes());
            let Some((kind, KindReads(groups))) = largest else { return };
            let kind = kind.clone();
            let namespace = groups
                .iter()
                .filter(|(_, group)| !group.is_whole && groups.len() <= NAMESPACES_MAX)
                .max_by_key(|(namespace, group)| group.bytes(namespace))
                .map_or("".into(), |(namespace, _)| namespace.clone());
            self.make_whole(&kind, &namespace);
        }
    }
}

impl KindReads {
    fn bytes(&self) -> usize {
        self.0.iter().map(|(namespace, group)| group.bytes(namespace)).sum()
    }
}

impl NamespaceReads {
    fn bytes(&self, namespace: &str) -> usize {
        let names: usize = self.names.iter().map(get_bytes).sum();
        let selectors: usize = self.selectors.iter().map(|one| list_bytes(namespace, one)).sum();
        let whole = if self.is_whole { list_bytes(namespace, &Selector::default()) } else { 0 };
        names + selectors + whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Arc<Kind> {
        Arc::new(Kind::namespaced("v1", name, ""))
    }

    fn pods() -> Arc<Kind> {
        kind("Pod")
    }

    fn whole(kind: &Arc<Kind>, namespace: &str) -> Read {
        let (kind, selector) = (kind.clone(), Arc::default());
        Read::List { kind, namespace: namespace.into(), selector }
    }

    fn selector(text: &str) -> Selector {
        text.parse().unwrap()
    }

    /// Checks that the counted bytes are those of the reads.
    fn reads(record: ReadRecord) -> Box<[Read]> {
        let bytes = record.bytes();
        let reads = record.into_reads();
        assert_eq!(reads.iter().map(Read::bytes).sum::<usize>(), bytes);
        reads
    }

    #[test]
    fn selectors_that_differ_in_their_text_only_are_one() {
        let mut record = ReadRecord::default();
        for text in ["a=1,b", "b,a=1", " b , a = 1 ", "a in (1),b,b"] {
            record.list(&pods(), "n", selector(text));
        }
        assert_eq!(reads(record).len(), 1);
    }

    #[test]
    fn more_selectors_than_the_limit_become_the_whole_namespace() {
        let mut record = ReadRecord::default();
        record.list(&pods(), "other", selector("a=1"));
        for number in 0..10_000 {
            record.list(&pods(), "n", selector(&format!("a={number}")));
            record.get(&pods(), &ObjectKey::new("n", &format!("p{number}")));
        }
        let other = Read::List {
            kind: pods(),
            namespace: "other".into(),
            selector: Arc::new(selector("a=1")),
        };
        assert_eq!(*reads(record), [whole(&pods(), "n"), other]);
    }

    #[test]
    fn a_selector_of_a_thousand_requirements_becomes_the_whole_namespace() {
        let mut record = ReadRecord::default();
        let requirements: Vec<_> = (0..1_000).map(|number| format!("!a{number}")).collect();
        record.list(&pods(), "n", selector(&requirements.join(",")));
        let values: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
        record.list(&pods(), "m", selector(&format!("a in ({})", values.join(","))));
        assert_eq!(*reads(record), [whole(&pods(), "m"), whole(&pods(), "n")]);
    }

    #[test]
    fn names_beyond_the_limit_become_their_namespace_and_other_kinds_stay_exact() {
        let mut record = ReadRecord::default();
        let key = ObjectKey::new("n", "one");
        record.get(&kind("Secret"), &key);
        for number in 0..10_000 {
            record.get(&pods(), &ObjectKey::new("n", &format!("p{number}")));
            assert!(record.bytes() <= RECORD_BYTES_MAX);
        }
        assert_eq!(*reads(record), [whole(&pods(), "n"), Read::Get { kind: kind("Secret"), key }]);
    }

    #[test]
    fn names_in_ten_thousand_namespaces_become_the_whole_kind() {
        let mut record = ReadRecord::default();
        for number in 0..10_000 {
            record.get(&pods(), &ObjectKey::new(&format!("n{number}"), "absent"));
            record.list(&kind("Secret"), &format!("n{number}"), selector("a=1"));
            assert!(record.bytes() <= RECORD_BYTES_MAX);
        }
        assert_eq!(*reads(record), [whole(&pods(), ""), whole(&kind("Secret"), "")]);
    }

    #[test]
    fn namespaces_of_any_length_stay_within_the_limit() {
        let mut record = ReadRecord::default();
        for number in 0..10_000 {
            let namespace = format!("{}/../{number}", "\u{1F4A3}".repeat(70));
            record.get(&pods(), &ObjectKey::new(&namespace, &"x".repeat(317)));
            record.list(&pods(), &namespace, Selector::default());
            assert!(record.bytes() <= RECORD_BYTES_MAX);
        }
        assert_eq!(*reads(record), [whole(&pods(), "")]);
    }

    #[test]
    fn a_hundred_kinds_read_in_every_way_stay_within_the_limit() {
        let mut record = ReadRecord::default();
        for number in 0..1_000_000 {
            let kind = kind(&format!("Kind{}", number % 100));
            record.get(&kind, &ObjectKey::new(&format!("n{}", number % 7), &format!("p{number}")));
            assert!(record.bytes() <= RECORD_BYTES_MAX);
            if number > 20_000 {
                break;
            }
        }
        record.make_small();
        assert!(record.bytes() <= 100 * (LIST_BYTES + 100), "{}", record.bytes());
        assert_eq!(reads(record).len(), 100);
    }

    #[test]
    fn a_list_of_a_cluster_scoped_kind_is_in_no_namespace() {
        let nodes = Arc::new(Kind::cluster("v1", "Node", ""));
        let mut record = ReadRecord::default();
        record.list(&nodes, "n", Selector::default());
        assert_eq!(*reads(record), [whole(&nodes, "")]);
    }

    #[test]
    fn record_that_became_whole_concerns_every_object_of_its_namespace() {
        let mut record = ReadRecord::default();
        for number in 0..10_000 {
            record.get(&pods(), &ObjectKey::new("n", &format!("p{number}")));
        }
        let object = |namespace: &str| {
            let text = format!(r#"{{"metadata":{{"name":"p7","namespace":"{namespace}"}}}}"#);
            Object::decode(&pods(), &text, None).unwrap()
        };
        let mut budget = Budget(100);
        assert!(record.concerns(&pods(), &object("n"), &mut budget));
        assert!(!record.concerns(&pods(), &object("m"), &mut budget));
        assert!(!record.concerns(&kind("Secret"), &object("n"), &mut budget));
    }

    #[test]
    fn selectors_beyond_the_budget_match() {
        let (a, labels) = (selector("a=1"), innkeeper_core::Labels::default());
        let mut budget = Budget(2 * (a.weight() + 1));
        assert!(!budget.matches(&a, &labels) && !budget.matches(&a, &labels));
        assert!(budget.matches(&a, &labels));
    }
}
