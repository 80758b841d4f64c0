//! The results of one policy for existing objects, and the objects that wait for a review.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::audit::{
    AuditCounts, AuditOutcome, AuditResult, FINDINGS_MAX, Finding, Report, reports,
};
use innkeeper_core::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;

use super::audited_object::AuditedObject;
use crate::policies::matched_kinds::LeftOut;

/// The most objects of one policy. Further ones are left out, by order of kind and name.
pub const OBJECTS_MAX: usize = 100_000;

/// How many reviews in a row may take all of their time before the audit of the revision ends: each
/// of them costs seconds of a core.
const TIMEOUTS_MAX: u32 = 5;

/// The longest problem that the status of a Module shows, in bytes.
const PROBLEM_BYTES_MAX: usize = 500;

/// Why an object is to be reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReviewTrigger {
    /// The object may have changed. An object with unchanged content keeps its result.
    Object,
    /// The policy has changed, or something that the last review of the object read. The policy
    /// reviews the object even if its content is unchanged.
    Dependency,
}

/// The last review of one object.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// A hash of the uid and the resource version.
    version: u64,
    /// A hash of the content, of which the resource version is no part.
    content: u64,
    /// The last result; `None` before the first review.
    result: Option<AuditResult>,
}

/// The results of one policy for existing objects, and the objects that wait for a review. Nothing
/// here calls a guest.
#[derive(Debug)]
pub(super) struct ObjectResults {
    module: Arc<str>,
    entries: BTreeMap<AuditedObject, Entry>,
    pending: BTreeMap<AuditedObject, ReviewTrigger>,
    findings: BTreeMap<AuditedObject, Finding>,
    /// By namespace; the empty text is that of cluster-scoped objects.
    counts: BTreeMap<Box<str>, AuditCounts>,
    /// All counts together.
    total: AuditCounts,
    left_out: Vec<LeftOut>,
    /// How many objects are left out, since there are more than [`OBJECTS_MAX`].
    excess: usize,
    /// How many reviews in a row took all of their time.
    timeouts: u32,
    completed: Option<Timestamp>,
    /// Whether the results differ from those that were reported last.
    is_changed: bool,
}

impl ObjectResults {
    /// No results yet, for the policy of a module.
    pub(super) fn new(module: Arc<str>) -> Self {
        Self {
            module,
            entries: BTreeMap::new(),
            pending: BTreeMap::new(),
            findings: BTreeMap::new(),
            counts: BTreeMap::new(),
            total: AuditCounts::default(),
            left_out: Vec::new(),
            excess: 0,
            timeouts: 0,
            completed: None,
            is_changed: true,
        }
    }

    /// Takes the objects that the policy reviews now, and those that are left out. Queues the
    /// objects that are new or have changed; forgets and returns those that are gone.
    pub(super) fn take_list<'a>(
        &mut self,
        objects: impl Iterator<Item = (&'a Arc<Kind>, &'a Object)>,
        left_out: Vec<LeftOut>,
    ) -> Vec<AuditedObject> {
        let mut present = BTreeSet::new();
        let mut excess = 0;
        for (kind, object) in objects {
            let id = self.id(kind, &object.key);
            if present.len() >= OBJECTS_MAX {
                excess += 1;
                continue;
            }
            let entry = self.entries.entry(id.clone()).or_default();
            if entry.result.is_none() || entry.version != version(object) {
                self.pending.entry(id.clone()).or_insert(ReviewTrigger::Object);
            }
            present.insert(id);
        }
        self.is_changed |= self.left_out != left_out || self.excess != excess;
        (self.left_out, self.excess) = (left_out, excess);
        let is_gone = |id: &&AuditedObject| !present.contains(id);
        let gone: Vec<AuditedObject> = self.entries.keys().filter(is_gone).cloned().collect();
        for id in &gone {
            self.remove(id);
        }
        gone
    }

    /// Queues an object that may have changed.
    pub(super) fn queue(&mut self, kind: &Arc<Kind>, key: &ObjectKey) {
        let id = self.id(kind, key);
        if self.entries.contains_key(&id) || self.entries.len() < OBJECTS_MAX {
            self.pending.entry(id).or_insert(ReviewTrigger::Object);
        }
    }

    /// Queues an object whose last review read something that has changed.
    pub(super) fn wake(&mut self, id: &AuditedObject) {
        if self.entries.contains_key(id) {
            self.pending.insert(id.clone(), ReviewTrigger::Dependency);
        }
    }

    /// Queues an object whose review did not take place.
    pub(super) fn queue_again(&mut self, id: &AuditedObject) {
        self.pending.insert(id.clone(), ReviewTrigger::Dependency);
    }

    /// Queues all objects, because the policy has changed, or what it may read.
    pub(super) fn wake_all(&mut self) {
        self.pending.extend(self.entries.keys().map(|id| (id.clone(), ReviewTrigger::Dependency)));
        self.timeouts = 0;
    }

    /// Queues all objects for another revision, or other settings. Each result stays until the next
    /// review of its object.
    pub(super) fn restart(&mut self) {
        self.completed = None;
        self.is_changed = true;
        self.wake_all();
    }

    /// Takes the next object to review.
    pub(super) fn next(&mut self) -> Option<(AuditedObject, ReviewTrigger)> {
        self.pending.pop_first()
    }

    /// The number of objects that wait for a review.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether the last result of an object still holds, since its content is unchanged and nothing
    /// else triggered the review. Records the version of the object then.
    pub(super) fn keep_result(
        &mut self,
        id: &AuditedObject,
        object: &Object,
        trigger: ReviewTrigger,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(id) else { return false };
        let is_same = entry.result.is_some() && entry.content == content(object);
        if trigger == ReviewTrigger::Dependency || !is_same {
            return false;
        }
        entry.version = version(object);
        true
    }

    /// Whether the audit calls the policy no more, since its reviews only take time.
    pub(super) fn has_given_up(&self) -> bool {
        self.timeouts >= TIMEOUTS_MAX
    }

    /// The outcome of an object that is not reviewed, since [`Self::has_given_up`].
    pub(super) fn given_up() -> AuditOutcome {
        AuditOutcome::failed(
            "AuditStopped",
            format!(
                "not reviewed: the last {TIMEOUTS_MAX} reviews took all of their time; raise spec.limits.timeout or push another revision"
            ),
        )
    }

    /// Records the outcome of a review.
    pub(super) fn record(&mut self, id: &AuditedObject, object: &Object, outcome: &AuditOutcome) {
        if outcome.is_timeout() {
            self.timeouts = self.timeouts.saturating_add(1);
        } else if !self.has_given_up() {
            self.timeouts = 0;
        }
        let entry = self.entries.entry(id.clone()).or_default();
        let before = entry.result.replace(outcome.result);
        (entry.version, entry.content) = (version(object), content(object));
        if before != Some(outcome.result) {
            let counts = self.counts.entry(id.key.namespace().into()).or_default();
            if let Some(before) = before {
                counts.discount(before);
                self.total.discount(before);
            }
            counts.count(outcome.result);
            self.total.count(outcome.result);
            self.is_changed = true;
        }
        self.set_finding(id, object, outcome);
    }

    fn set_finding(&mut self, id: &AuditedObject, object: &Object, outcome: &AuditOutcome) {
        if !outcome.result.is_listed() {
            self.is_changed |= self.findings.remove(id).is_some();
            return;
        }
        let has_place = self.findings.len() < FINDINGS_MAX || self.findings.contains_key(id);
        if !has_place {
            return;
        }
        let finding = Finding::new(
            (&id.kind, &id.key, &object.uid),
            outcome.result,
            &outcome.reason,
            &outcome.message,
        );
        if self.findings.get(id) != Some(&finding) {
            self.findings.insert(id.clone(), finding);
            self.is_changed = true;
        }
    }

    /// Forgets an object that is gone, or that the policy does not review any more.
    pub(super) fn remove(&mut self, id: &AuditedObject) {
        self.pending.remove(id);
        self.findings.remove(id);
        let Some(entry) = self.entries.remove(id) else { return };
        let Some(result) = entry.result else { return };
        self.is_changed = true;
        self.total.discount(result);
        let namespace = id.key.namespace();
        if let Some(counts) = self.counts.get_mut(namespace) {
            counts.discount(result);
            if counts.total() == 0 {
                self.counts.remove(namespace);
            }
        }
    }

    /// Records that no object waits for a review, if so, and if that is the first time.
    pub(super) fn note_complete(&mut self, now: Timestamp) {
        if self.pending.is_empty() && self.completed.is_none() {
            self.completed = Some(now);
            self.is_changed = true;
        }
    }

    /// When all objects had been reviewed with the present revision and settings.
    pub(super) fn completed(&self) -> Option<Timestamp> {
        self.completed
    }

    /// Whether there is something to report: results that have changed since the last
    /// [`Self::take_change`], or, if all objects are known (`is_listed`), that the last pending
    /// object was reviewed.
    pub(super) fn needs_report(&self, is_listed: bool) -> bool {
        let is_newly_complete = is_listed && self.completed.is_none() && self.pending.is_empty();
        self.is_changed || is_newly_complete
    }

    /// Records that the results are reported now. Returns whether they had changed.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.is_changed, false)
    }

    /// Records that the results have to be reported again.
    pub(super) fn mark_changed(&mut self) {
        self.is_changed = true;
    }

    /// The reports of the results.
    pub(super) fn reports(&self) -> Vec<Report<'_>> {
        reports(&self.module, &self.counts, self.findings.values())
    }

    /// How many objects had which result.
    pub(super) fn total(&self) -> &AuditCounts {
        &self.total
    }

    /// The objects that are left out, with the reasons, in one line.
    pub(super) fn problem(&self) -> Option<String> {
        let mut parts: Vec<String> =
            self.left_out.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
        if self.excess > 0 {
            parts.push(format!("{} objects beyond {OBJECTS_MAX} are left out", self.excess));
        }
        if self.has_given_up() {
            parts.push(Self::given_up().message);
        }
        (!parts.is_empty())
            .then(|| innkeeper_core::foreign::one_line(parts.join("; "), PROBLEM_BYTES_MAX))
    }

    /// The identity of an object as one of this policy.
    pub(super) fn id(&self, kind: &Arc<Kind>, key: &ObjectKey) -> AuditedObject {
        AuditedObject { module: self.module.clone(), kind: kind.clone(), key: key.clone() }
    }
}

/// A hash of the version of an object. It never leaves the process.
fn version(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&object.uid, &object.resource_version).hash(&mut hasher);
    hasher.finish()
}

/// A hash of the content of an object, of which the resource version is no part.
fn content(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    match serde_json::from_str::<Value>(&object.text.read()) {
        Ok(mut value) => {
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("resourceVersion");
            }
            value.to_string().hash(&mut hasher);
        }
        Err(_) => object.text.read().hash(&mut hasher),
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
