//! Which requests a change concerns: the index of what their last runs read.
//!
//! The index records every read of a run, also lists and objects that were not found. A change
//! wakes the requests whose last run would have read something else because of it. The index finds
//! them by kind, namespace and name, or by kind, namespace and one label, and never walks over all.
//!
//! A change can arrive after a run took its snapshot and before its reads are recorded. So the
//! index keeps the changes since the oldest running run began, and compares them with the reads
//! when these are recorded: it misses no change.
//!
//! A request also sleeps through a change of fields that its last run could not read
//! ([`crate::watch::read_scope`]).
//!
//! # Bounds
//! Each bound may wake a request too often, never too seldom.
//! - [`crate::watch::read_record`] bounds the record of a run, and a limit of the Module bounds all
//!   its records: beyond that a record that is not small becomes that of a reader of whole kinds.
//! - A reader of a whole namespace or kind that was woken is not compared again before its next run
//!   begins: so a change costs nothing for requests that wait for their turn. Nor does one that all
//!   readers of a module sleep through, however many they are.
//! - One change costs at most [`COMPARISONS_MAX`] comparisons for each module. Readers of whole
//!   namespaces or kinds are woken without a comparison.
//! - A record is compared by fields with at most [`FIELD_COMPARISONS_MAX`] changes during its run.
//! - The kept changes are bounded in number and bytes: a run that began before the first of them
//!   runs again.

mod lists;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{KindMasks, Object, ObjectKey};

use self::lists::{Lists, SmallSet};
use crate::queue::ReconcileRequest;
pub use crate::watch::read_record::Read;
use crate::watch::read_record::{Budget, ReadRecord, SMALL_RECORD_BYTES};
use crate::watch::read_scope::{ReadScopes, Unread, UnreadByModule};
use crate::watch::reader::Reader;

/// The most comparisons of labels with selectors: for one change and one module, and for one record
/// with all changes during its run.
pub const COMPARISONS_MAX: usize = 8_192;

/// The most comparisons of fields for one record with all changes during its run.
const FIELD_COMPARISONS_MAX: usize = 32;

/// The most changes to keep for running runs.
const CHANGES_MAX: usize = 4_096;

/// The most bytes of the texts of these changes, which comparisons decompress.
const CHANGES_BYTES_MAX: usize = 32 << 20;

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change<R = ReconcileRequest> {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The object before; `None` if it is new.
    pub before: Option<Arc<Object>>,
    /// The object now; `None` if it is gone.
    pub after: Option<Arc<Object>>,
    /// The request that made this write: the change does not wake it.
    pub writer: Option<R>,
}

impl<R> Change<R> {
    /// The object before and now; `None` if it is new or gone.
    pub fn both(&self) -> Option<(&Object, &Object)> {
        self.before.as_deref().zip(self.after.as_deref())
    }

    fn versions(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.before.iter().chain(&self.after)
    }

    fn bytes(&self) -> usize {
        self.versions().map(|object| object.text.len()).sum()
    }
}

/// A run that has begun: changes from here on concern it.
#[derive(Debug)]
#[must_use = "a run that began must be recorded or abandoned"]
pub struct RunStart {
    from: u64,
}

/// Which request read what. See the [module's documentation](self).
#[derive(Debug)]
pub struct DependencyIndex<R = ReconcileRequest> {
    by_request: BTreeMap<R, Box<[Read]>>,
    gets: BTreeMap<(Arc<Kind>, ObjectKey), SmallSet<R>>,
    lists: BTreeMap<Arc<Kind>, BTreeMap<Box<str>, Lists<R>>>,
    /// By the uid of the owner; each with the namespace in which it can own objects, empty for all.
    owned: BTreeMap<Box<str>, SmallSet<(Box<str>, R)>>,
    /// Which fields the requests could read.
    scopes: ReadScopes<R>,
    /// The bytes of the records of each module.
    bytes: BTreeMap<Arc<str>, usize>,
    /// The changes since the oldest running run began; the first has the number `first`.
    changes: VecDeque<Arc<Change<R>>>,
    changes_bytes: usize,
    first: u64,
    /// The number of running runs that began at each number.
    runs: BTreeMap<u64, usize>,
}

impl<R> Default for DependencyIndex<R> {
    fn default() -> Self {
        Self {
            by_request: BTreeMap::new(),
            gets: BTreeMap::new(),
            lists: BTreeMap::new(),
            owned: BTreeMap::new(),
            scopes: ReadScopes::default(),
            bytes: BTreeMap::new(),
            changes: VecDeque::new(),
            changes_bytes: 0,
            first: 0,
            runs: BTreeMap::new(),
        }
    }
}

impl<R: Reader> DependencyIndex<R> {
    /// Begins a run of a request; to be called before its snapshot is taken.
    pub fn begin(&mut self, request: &R) -> RunStart {
        for read in self.by_request.get(request).into_iter().flatten() {
            if let Read::List { kind, namespace, selector } = read
                && selector.is_everything()
                && let Some(lists) = self.lists.get_mut(kind).and_then(|all| all.get_mut(namespace))
            {
                lists.begin(request);
            }
        }
        let from = self.first + self.changes.len() as u64;
        *self.runs.entry(from).or_default() += 1;
        RunStart { from }
    }

    /// Ends a run and records its reads. Gives whether a change since its begin concerns it, so
    /// that it must run again. The records of its module may take `bytes_max`. `unread` compares a
    /// change with the fields that the runs of the module have reported, this one included.
    pub fn record(
        &mut self,
        request: &R,
        start: RunStart,
        mut record: ReadRecord,
        bytes_max: usize,
        unread: impl Fn(&Change<R>, Option<&KindMasks>) -> Unread,
    ) -> bool {
        self.scopes.set(request.module(), request, record.take_scope());
        let is_missed = self.has_missed(request, &start, &record, unread);
        self.end(start);
        let of_others =
            self.bytes_of(request.module()).saturating_sub(self.bytes_of_request(request));
        if record.bytes() > SMALL_RECORD_BYTES && of_others + record.bytes() > bytes_max {
            record.make_small();
        }
        let reads = record.into_reads();
        if self.by_request.get(request).is_none_or(|before| *before != reads) {
            self.forget_reads(request);
            for read in &reads {
                self.insert(request, read);
            }
            let bytes: usize = reads.iter().map(Read::bytes).sum();
            *self.bytes.entry(request.module().clone()).or_default() += bytes;
            self.by_request.insert(request.clone(), reads);
        }
        is_missed
    }

    /// Ends a run without a record.
    pub fn abandon(&mut self, start: RunStart) {
        self.end(start);
    }

    /// Forgets the reads of a request.
    pub fn forget(&mut self, request: &R) {
        self.scopes.forget(request.module(), request);
        self.forget_reads(request);
    }

    fn forget_reads(&mut self, request: &R) {
        let Some(reads) = self.by_request.remove(request) else { return };
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
                    remove(&mut self.owned, uid, &(namespace.clone(), request.clone()));
                }
            }
        }
        let bytes: usize = reads.iter().map(Read::bytes).sum();
        if let Some(of_module) = self.bytes.get_mut(request.module()) {
            *of_module = of_module.saturating_sub(bytes);
            if *of_module == 0 {
                self.bytes.remove(request.module());
            }
        }
    }

    /// Forgets the reads of all requests of a module.
    pub fn forget_module(&mut self, module: &str) {
        let of_module: Vec<R> = self
            .by_request
            .keys()
            .filter(|request| &**request.module() == module)
            .cloned()
            .collect();
        for request in of_module {
            self.forget(&request);
        }
        self.forget_fields(module);
    }

    /// Lets every request count as one that read every field, whatever its runs report.
    pub fn read_every_field(&mut self) {
        self.scopes.read_every_field();
    }

    /// Forgets which fields the requests of a module could read, since another revision is active:
    /// each request counts as one that read every field until it has run.
    pub fn forget_fields(&mut self, module: &str) {
        self.scopes.read_every_field_of(module);
    }

    /// The fields that the runs of a module have reported, if they can be compared.
    pub fn reported_fields(&self, module: &str) -> Option<Arc<KindMasks>> {
        self.scopes.reported(module).cloned()
    }

    /// Whether a change leaves a request asleep although it read the object.
    pub fn stays_asleep(&self, request: &R, unread: &UnreadByModule) -> bool {
        self.scopes.stays_asleep(request.module(), request, unread)
    }

    /// The approximate bytes of the records of each module.
    pub fn bytes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.bytes.iter().map(|(module, bytes)| (&**module, *bytes))
    }

    /// The requests that a change concerns, without its writer. `unread` has the modules whose
    /// requests may sleep through it.
    pub fn changed(&mut self, change: &Arc<Change<R>>, unread: &UnreadByModule) -> BTreeSet<R> {
        self.keep_change(change);
        let mut found = BTreeSet::new();
        for object in change.versions() {
            let gets = self.gets.get(&(change.kind.clone(), object.key.clone()));
            let gets = gets.into_iter().flat_map(SmallSet::iter);
            found.extend(gets.filter(|request| !self.stays_asleep(request, unread)).cloned());
            for uid in object.owner_and_writer_uids() {
                let requests = self.owned.get(uid).into_iter().flat_map(SmallSet::iter);
                let requests = requests
                    .filter(|(within, _)| ["", object.key.namespace()].contains(&&**within))
                    .map(|(_, request)| request);
                found.extend(requests.filter(|one| !self.stays_asleep(one, unread)).cloned());
            }
        }
        self.add_listing(change, unread, &mut found);
        if let Some(writer) = &change.writer {
            found.remove(writer);
        }
        found
    }

    /// Adds the requests that listed a changed object.
    fn add_listing(
        &mut self,
        change: &Change<R>,
        unread: &UnreadByModule,
        found: &mut BTreeSet<R>,
    ) {
        let scopes = &self.scopes;
        let stays_asleep = |request: &R| {
            change.writer.as_ref() == Some(request)
                || scopes.stays_asleep(request.module(), request, unread)
        };
        let Some(of_kind) = self.lists.get_mut(&change.kind) else { return };
        let mut budgets = Budgets::default();
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        // Selectors compare labels only: a version with the same labels gives the same result.
        let before =
            before.filter(|before| after.is_none_or(|after| after.labels != before.labels));
        let key = change.versions().next().map(|object| &object.key);
        let Some(namespace) = key.map(ObjectKey::namespace) else { return };
        let namespaces = [namespace, ""];
        let namespaces = if namespace.is_empty() { &namespaces[..1] } else { &namespaces };
        for namespace in namespaces {
            if let Some(lists) = of_kind.get_mut(*namespace) {
                let sleeps = |module: &Arc<str>| scopes.all_stay_asleep(module, unread);
                lists.wake_whole(sleeps, stays_asleep, found);
            }
        }
        for lists in namespaces.iter().filter_map(|namespace| of_kind.get(*namespace)) {
            for object in before.into_iter().chain(after) {
                for (request, selector) in lists.selecting(&object.labels).flat_map(SmallSet::iter)
                {
                    if !stays_asleep(request)
                        && budgets.of(request.module()).matches(selector, &object.labels)
                    {
                        found.insert(request.clone());
                    }
                }
            }
        }
    }

    /// Whether a change since a run began concerns it, or may concern it.
    fn has_missed(
        &self,
        request: &R,
        start: &RunStart,
        record: &ReadRecord,
        unread: impl Fn(&Change<R>, Option<&KindMasks>) -> Unread,
    ) -> bool {
        let Some(skip) = start.from.checked_sub(self.first) else { return true };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let (mut budget, mut comparisons) = (Budget(COMPARISONS_MAX), 0);
        let module = request.module();
        let reported = self.scopes.reported(module).map(|masks| &**masks);
        self.changes.iter().skip(skip).any(|change| {
            let is_own = change.writer.as_ref() == Some(request);
            let mut versions = change.versions();
            if is_own || !versions.any(|one| record.concerns(&change.kind, one, &mut budget)) {
                return false;
            }
            comparisons += 1;
            comparisons > FIELD_COMPARISONS_MAX
                || !self.scopes.is_unread(module, request, unread(change, reported))
        })
    }

    /// Keeps a change for the running runs.
    fn keep_change(&mut self, change: &Arc<Change<R>>) {
        if self.runs.is_empty() {
            return;
        }
        self.changes.push_back(change.clone());
        self.changes_bytes += change.bytes();
        while self.changes.len() > CHANGES_MAX || self.changes_bytes > CHANGES_BYTES_MAX {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.changes_bytes -= change.bytes();
            self.first += 1;
        }
    }

    fn bytes_of(&self, module: &str) -> usize {
        self.bytes.get(module).copied().unwrap_or(0)
    }

    fn bytes_of_request(&self, request: &R) -> usize {
        self.by_request.get(request).map_or(0, |reads| reads.iter().map(Read::bytes).sum())
    }

    fn insert(&mut self, request: &R, read: &Read) {
        match read {
            Read::Get { kind, key } => {
                self.gets.entry((kind.clone(), key.clone())).or_default().insert(request.clone());
            }
            Read::List { kind, namespace, selector } => {
                let of_kind = self.lists.entry(kind.clone()).or_default();
                of_kind.entry(namespace.clone()).or_default().insert(request, selector);
            }
            Read::Owned { uid, namespace } => {
                let requests = self.owned.entry(uid.clone()).or_default();
                requests.insert((namespace.clone(), request.clone()));
            }
        }
    }

    /// Ends a run, and drops the changes that no running run needs.
    fn end(&mut self, RunStart { from }: RunStart) {
        if let Some(count) = self.runs.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.runs.remove(&from);
            }
        }
        let needed_from = self.runs.keys().next().copied().unwrap_or(u64::MAX);
        while self.first < needed_from && !self.changes.is_empty() {
            self.drop_first();
        }
    }
}

/// The comparisons that are left for each module and one change.
#[derive(Default)]
struct Budgets<'a> {
    by_module: BTreeMap<&'a str, Budget>,
}

impl<'a> Budgets<'a> {
    fn of(&mut self, module: &'a str) -> &mut Budget {
        self.by_module.entry(module).or_insert(Budget(COMPARISONS_MAX))
    }
}

fn remove<K: Ord, T: Ord>(map: &mut BTreeMap<K, SmallSet<T>>, place: &K, request: &T) {
    if map.get_mut(place).is_some_and(|requests| requests.remove(request)) {
        map.remove(place);
    }
}

#[cfg(test)]
mod tests;
