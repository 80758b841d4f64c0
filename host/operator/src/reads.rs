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
//! - A reader of a whole namespace or kind that was woken is not looked at again before its next
//!   run begins: so a change costs nothing for those that wait for their turn.
//! - For one change at most [`COMPARISONS_MAX`] comparisons are made for each module. Readers of
//!   whole namespaces or kinds are woken without any.
//! - The changes that are kept for runs under way are bounded in number and bytes: a run that began
//!   before the first of them runs again.

mod lists;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

use self::lists::{Lists, SmallSet};
use crate::queue::ReconcileRequest;
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
    pub writer: Option<ReconcileRequest>,
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
pub struct RunStart {
    from: u64,
}

/// Who read what. See the [module's documentation](self).
#[derive(Debug, Default)]
pub struct DependencyIndex {
    by_key: BTreeMap<ReconcileRequest, Box<[Read]>>,
    gets: BTreeMap<(Arc<Kind>, ObjectKey), SmallSet<ReconcileRequest>>,
    lists: BTreeMap<Arc<Kind>, BTreeMap<Box<str>, Lists>>,
    /// By the uid of the owner, and by the namespace in which it can own; empty for all.
    owned: BTreeMap<Box<str>, BTreeMap<Box<str>, SmallSet<ReconcileRequest>>>,
    /// Bytes of the records of each module.
    bytes: BTreeMap<Arc<str>, usize>,
    /// The changes since the oldest run under way; the first has the number `first`.
    log: VecDeque<Arc<Change>>,
    log_bytes: usize,
    first: u64,
    /// How many runs under way began at each number.
    runs: BTreeMap<u64, usize>,
}

impl DependencyIndex {
    /// A run of a key begins; to be called before its snapshot is taken.
    pub fn begin(&mut self, request: &ReconcileRequest) -> RunStart {
        for read in self.by_key.get(request).into_iter().flatten() {
            if let Read::List { kind, namespace, selector } = read
                && selector.is_everything()
                && let Some(lists) = self.lists.get_mut(kind).and_then(|all| all.get_mut(namespace))
            {
                lists.begin(request);
            }
        }
        let from = self.first + self.log.len() as u64;
        *self.runs.entry(from).or_default() += 1;
        RunStart { from }
    }

    /// The run ended and read this. Gives whether a change since its begin concerns it, so that
    /// it must run again. The records of its module may take `bytes_max`.
    pub fn record(
        &mut self,
        request: &ReconcileRequest,
        begun: RunStart,
        mut record: ReadRecord,
        bytes_max: usize,
    ) -> bool {
        let is_missed = self.has_missed(request, &begun, &record);
        self.end(begun);
        let of_others = self.bytes_of(&request.module).saturating_sub(self.bytes_of_key(request));
        if record.bytes() > SMALL_RECORD_BYTES && of_others + record.bytes() > bytes_max {
            record.make_small();
        }
        let reads = record.into_reads();
        if self.by_key.get(request).is_none_or(|before| *before != reads) {
            self.forget(request);
            for read in &reads {
                self.insert(request, read);
            }
            let bytes: usize = reads.iter().map(Read::bytes).sum();
            *self.bytes.entry(request.module.clone()).or_default() += bytes;
            self.by_key.insert(request.clone(), reads);
        }
        is_missed
    }

    /// The run ended without anything to record.
    pub fn abandon(&mut self, begun: RunStart) {
        self.end(begun);
    }

    /// A key reads nothing any more.
    pub fn forget(&mut self, request: &ReconcileRequest) {
        let Some(reads) = self.by_key.remove(request) else { return };
        for read in &reads {
            match read {
                Read::Get { kind, key } => {
                    remove(&mut self.gets, &(kind.clone(), key.clone()), request);
                }
                Read::List { kind, namespace, selector } => {
                    let Some(of_kind) = self.lists.get_mut(kind) else { continue };
                    if of_kind
                        .get_mut(namespace)
                        .is_some_and(|lists| lists.remove(request, selector))
                    {
                        of_kind.remove(namespace);
                    }
                    if of_kind.is_empty() {
                        self.lists.remove(kind);
                    }
                }
                Read::Owned { uid, namespace } => {
                    let Some(within) = self.owned.get_mut(uid) else { continue };
                    remove(within, namespace, request);
                    if within.is_empty() {
                        self.owned.remove(uid);
                    }
                }
            }
        }
        let bytes: usize = reads.iter().map(Read::bytes).sum();
        if let Some(of_module) = self.bytes.get_mut(&request.module) {
            *of_module = of_module.saturating_sub(bytes);
            if *of_module == 0 {
                self.bytes.remove(&request.module);
            }
        }
    }

    /// Forgets all keys of a module.
    pub fn forget_module(&mut self, module: &str) {
        let of_module: Vec<ReconcileRequest> =
            self.by_key.keys().filter(|request| &*request.module == module).cloned().collect();
        for request in of_module {
            self.forget(&request);
        }
    }

    /// About how many bytes the records of each module take.
    pub fn bytes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.bytes.iter().map(|(module, bytes)| (&**module, *bytes))
    }

    /// Something changed: the keys that it concerns, without its writer.
    pub fn changed(&mut self, change: &Arc<Change>) -> BTreeSet<ReconcileRequest> {
        self.log(change);
        let mut found = BTreeSet::new();
        for object in change.versions() {
            let gets = self.gets.get(&(change.kind.clone(), object.key.clone()));
            found.extend(gets.into_iter().flat_map(SmallSet::iter).cloned());
            for uid in object.owner_and_writer_uids() {
                let Some(within) = self.owned.get(uid) else { continue };
                let here = within.get(object.key.namespace());
                let anywhere = within.get("").filter(|_| !object.key.namespace().is_empty());
                let works = here.into_iter().chain(anywhere);
                found.extend(works.flat_map(SmallSet::iter).cloned());
            }
        }
        self.add_listing(change, &mut found);
        if let Some(writer) = &change.writer {
            found.remove(writer);
        }
        found
    }

    /// Adds the keys that listed a changed object.
    fn add_listing(&mut self, change: &Change, found: &mut BTreeSet<ReconcileRequest>) {
        let Some(of_kind) = self.lists.get_mut(&change.kind) else { return };
        let mut budgets = Budgets::default();
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        // Selectors see labels only: a version with the same ones says nothing new.
        let before =
            before.filter(|before| after.is_none_or(|after| after.labels != before.labels));
        let key = change.versions().next().map(|object| &object.key);
        let Some(namespace) = key.map(ObjectKey::namespace) else { return };
        let namespaces = [namespace, ""];
        let namespaces = if namespace.is_empty() { &namespaces[..1] } else { &namespaces };
        for namespace in namespaces {
            if let Some(lists) = of_kind.get_mut(*namespace) {
                lists.wake_whole(change.writer.as_ref(), found);
            }
        }
        for lists in namespaces.iter().filter_map(|namespace| of_kind.get(*namespace)) {
            for object in before.into_iter().chain(after) {
                for (request, selector) in lists.selecting(&object.labels).flat_map(SmallSet::iter)
                {
                    if budgets.of(&request.module).matches(selector, &object.labels) {
                        found.insert(request.clone());
                    }
                }
            }
        }
    }

    /// Whether a change since the begin of a run concerns it, or may.
    fn has_missed(
        &self,
        request: &ReconcileRequest,
        begun: &RunStart,
        record: &ReadRecord,
    ) -> bool {
        let Some(skip) = begun.from.checked_sub(self.first) else { return true };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let mut budget = Budget(COMPARISONS_MAX);
        self.log.iter().skip(skip).any(|change| {
            change.writer.as_ref() != Some(request)
                && change
                    .versions()
                    .any(|object| record.concerns(&change.kind, object, &mut budget))
        })
    }

    /// Keeps a change for the runs under way.
    fn log(&mut self, change: &Arc<Change>) {
        if self.runs.is_empty() {
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

    fn bytes_of_key(&self, request: &ReconcileRequest) -> usize {
        self.by_key.get(request).map_or(0, |reads| reads.iter().map(Read::bytes).sum())
    }

    fn insert(&mut self, request: &ReconcileRequest, read: &Read) {
        match read {
            Read::Get { kind, key } => {
                self.gets.entry((kind.clone(), key.clone())).or_default().insert(request.clone());
            }
            Read::List { kind, namespace, selector } => {
                let of_kind = self.lists.entry(kind.clone()).or_default();
                of_kind.entry(namespace.clone()).or_default().insert(request, selector);
            }
            Read::Owned { uid, namespace } => {
                let within = self.owned.entry(uid.clone()).or_default();
                within.entry(namespace.clone()).or_default().insert(request.clone());
            }
        }
    }

    /// Ends a run, and drops the changes that no run under way needs.
    fn end(&mut self, RunStart { from }: RunStart) {
        if let Some(count) = self.runs.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.runs.remove(&from);
            }
        }
        let needed_from = self.runs.keys().next().copied().unwrap_or(u64::MAX);
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

fn remove<K: Ord>(
    map: &mut BTreeMap<K, SmallSet<ReconcileRequest>>,
    place: &K,
    request: &ReconcileRequest,
) {
    if map.get_mut(place).is_some_and(|works| works.remove(request)) {
        map.remove(place);
    }
}

#[cfg(test)]
mod tests;
