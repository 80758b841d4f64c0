//! The queue of the controllers: owners and dependents of objects, and the work that is due now or
//! later.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::state::controller_set::Controllers;
use crate::state::controller_set::{Work, Workload};
use crate::state::label_index::LabelIndex;
use crate::types::object::{is_terminating, meta};
use crate::types::object_key::{Key, KindKey, ObjectRef};

/// The batch size. Follow-up work runs after each batch, while its objects are still kept as trees.
pub(crate) const TOGETHER_MAX: usize = 32;

/// The owners and dependents of all objects, and the work of the controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkQueue {
    /// The key of the object of a uid.
    places: BTreeMap<String, ObjectRef>,
    /// The uids of an object's owners, of those that have any.
    owners: BTreeMap<String, Vec<String>>,
    /// The objects that name a uid as an owner.
    dependents: BTreeMap<String, BTreeSet<ObjectRef>>,
    /// The uids of objects that are being deleted.
    leaving: BTreeSet<String>,
    /// The queue of the garbage collector.
    pub(crate) garbage: BTreeSet<ObjectRef>,
    /// Objects that wait until the kind of their owner is served.
    pub(crate) unserved: BTreeSet<ObjectRef>,
    /// Namespaces that are being deleted.
    pub(crate) terminating: BTreeSet<String>,
    /// Definitions that are being deleted.
    pub(crate) ending: BTreeSet<String>,
    /// The queue of the other controllers.
    due: BTreeSet<Work>,
    /// Work for after that, the last set first.
    rest: Vec<BTreeSet<Work>>,
    /// Work for a later time.
    timers: BTreeMap<Timestamp, BTreeSet<Work>>,
    /// All DaemonSets: each change of a Node concerns them.
    daemon_sets: BTreeSet<Key>,
    /// Which Services select which Pods.
    pub(crate) labels: LabelIndex,
}

impl WorkQueue {
    /// Records an object that was stored.
    pub(crate) fn stored(&mut self, on: Controllers, kind: &KindKey, key: &Key, object: &Value) {
        let uid = meta(object, "uid");
        let owners = owner_uids(object);
        let place = ObjectRef { kind: kind.clone(), key: key.clone() };
        if is_terminating(object) {
            self.leaving.insert(uid.to_owned());
        }
        if on.garbage_collector {
            // An object with existing owners is queued when one of them is deleted.
            let lost = |owner: &Value| {
                let uid = owner["uid"].as_str().unwrap_or_default();
                let there = self.places.get(uid).filter(|there| may_be(owner, there, key));
                there.is_none() || self.leaving.contains(uid)
            };
            if is_terminating(object) || references(object).any(lost) {
                self.garbage.insert(place.clone());
            }
            // The owner may be deleted, if this object no longer blocks it.
            self.wake_owners(uid, &owners);
        }
        let before = self.owners.get(uid).map(Vec::as_slice).unwrap_or_default();
        if before != owners {
            for gone in before {
                if let Some(dependents) = self.dependents.get_mut(gone) {
                    dependents.remove(&place);
                }
            }
            for owner in &owners {
                self.dependents.entry(owner.clone()).or_default().insert(place.clone());
            }
            if owners.is_empty() {
                self.owners.remove(uid);
            } else {
                self.owners.insert(uid.to_owned(), owners);
            }
        }
        if !self.places.contains_key(uid) {
            self.places.insert(uid.to_owned(), place);
        }
        if kind.0.is_empty() && kind.1 == "namespaces" && is_terminating(object) {
            self.terminating.insert(key.1.clone());
        }
        if kind.1 == "customresourcedefinitions" && is_terminating(object) {
            self.ending.insert(key.1.clone());
        }
        self.notice(on, kind, key, object, false);
    }

    /// Records that an object was removed.
    pub(crate) fn removed(&mut self, on: Controllers, kind: &KindKey, key: &Key, last: &Value) {
        let uid = meta(last, "uid");
        let place = ObjectRef { kind: kind.clone(), key: key.clone() };
        self.places.remove(uid);
        self.leaving.remove(uid);
        let owners = self.owners.remove(uid).unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(&place);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        if on.garbage_collector {
            self.garbage.remove(&place);
            self.garbage.extend(self.dependents.get(uid).into_iter().flatten().cloned());
            for owner in &owners {
                self.garbage.extend(self.places.get(owner).cloned());
            }
        }
        if kind.0.is_empty() && kind.1 == "namespaces" {
            self.terminating.remove(&key.1);
        }
        if kind.1 == "customresourcedefinitions" {
            self.ending.remove(&key.1);
        }
        self.notice(on, kind, key, last, true);
    }

    fn wake_owners(&mut self, uid: &str, now: &[String]) {
        let before = self.owners.get(uid).map(Vec::as_slice).unwrap_or_default();
        for owner in before.iter().filter(|owner| !now.contains(owner)) {
            self.garbage.extend(self.places.get(owner).cloned());
        }
    }

    /// Queues an object for the controllers that reconcile it.
    fn notice(
        &mut self,
        on: Controllers,
        kind: &KindKey,
        key: &Key,
        object: &Value,
        is_gone: bool,
    ) {
        if on.workloads.is_none() {
            return;
        }
        if kind.0.is_empty() && kind.1 == "services" {
            let selector = &object["spec"]["selector"];
            self.labels.service(key, if is_gone { &Value::Null } else { selector });
        }
        for workload in Workload::of(kind) {
            self.wake(on, *workload, key);
        }
        self.notice_of_controllers(on, kind, key, is_gone);
        if kind.0.is_empty() && kind.1 == "pods" {
            let labels = &object["metadata"]["labels"];
            self.labels.pod(key, if is_gone { &Value::Null } else { labels });
            for service in self.labels.services_of(key, labels) {
                self.wake(on, Workload::Endpoints, &service);
            }
        }
        if kind.0.is_empty() && kind.1 == "persistentvolumeclaims" && !is_gone {
            self.wake_waiting(on, key);
        }
        for owner in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            let workload = match owner["kind"].as_str() {
                Some("Deployment") => Workload::Deployments,
                Some("ReplicaSet") => Workload::ReplicaSets,
                Some("ReplicationController") => Workload::ReplicationControllers,
                Some("StatefulSet") => Workload::StatefulSets,
                Some("DaemonSet") => Workload::DaemonSets,
                Some("Job") => Workload::Jobs,
                Some("CronJob") => Workload::CronJobs,
                _ => continue,
            };
            let name = owner["name"].as_str().unwrap_or_default().to_owned();
            self.wake(on, workload, &(key.0.clone(), name));
        }
    }

    /// Queues objects that a controller reconciles when one of another kind changes.
    fn notice_of_controllers(&mut self, on: Controllers, kind: &KindKey, key: &Key, is_gone: bool) {
        let namespace = || (String::new(), key.0.clone());
        match (kind.0.as_str(), kind.1.as_str(), key.1.as_str()) {
            ("apps", "daemonsets", _) if is_gone => {
                self.daemon_sets.remove(key);
            }
            ("apps", "daemonsets", _) => {
                self.daemon_sets.insert(key.clone());
            }
            ("", "nodes", _) => {
                for set in self.daemon_sets.clone() {
                    self.wake(on, Workload::DaemonSets, &set);
                }
            }
            ("", "serviceaccounts", "default") => {
                self.wake(on, Workload::ServiceAccounts, &namespace());
            }
            ("", "configmaps", "kube-root-ca.crt") => {
                self.wake(on, Workload::RootCertificates, &namespace());
            }
            _ => {}
        }
    }

    /// Pods that may wait for a claim.
    fn wake_waiting(&mut self, on: Controllers, claim: &Key) {
        let waiting: Vec<Key> = self
            .timers
            .values()
            .flatten()
            .filter(|work| work.workload == Workload::Pods && work.key.0 == claim.0)
            .map(|work| work.key.clone())
            .collect();
        for key in waiting {
            self.wake(on, Workload::Pods, &key);
        }
    }

    /// Queues an object for a controller.
    pub(crate) fn wake(&mut self, on: Controllers, workload: Workload, key: &Key) {
        if on.workloads.has(workload) {
            self.due.insert(Work { workload, key: key.clone() });
        }
    }

    /// Queues an object for a controller at a later time.
    pub(crate) fn wake_at(&mut self, time: Timestamp, workload: Workload, key: &Key) {
        self.timers.entry(time).or_default().insert(Work { workload, key: key.clone() });
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.timers.keys().next().copied()
    }

    /// Takes the next batch of work. Follow-up work of a batch comes before the rest, so that
    /// controllers find recently written objects as trees.
    pub(crate) fn take(&mut self, now: Timestamp) -> BTreeSet<Work> {
        let mut due = std::mem::take(&mut self.due);
        while let Some(first) = self.timers.first_entry().filter(|first| *first.key() <= now) {
            due.extend(first.remove());
        }
        for work in &due {
            // Once is enough.
            for rest in &mut self.rest {
                rest.remove(work);
            }
        }
        while due.is_empty()
            && let Some(rest) = self.rest.pop()
        {
            due = rest;
        }
        if due.len() <= TOGETHER_MAX {
            return due;
        }
        let together = std::iter::from_fn(|| due.pop_first()).take(TOGETHER_MAX).collect();
        self.rest.push(due);
        together
    }

    /// The number of queued objects.
    pub(crate) fn waiting(&self) -> usize {
        self.due.len() + self.rest.iter().map(BTreeSet::len).sum::<usize>()
    }

    /// The key of the object of a uid, if it exists.
    pub(crate) fn place(&self, uid: &str) -> Option<&ObjectRef> {
        self.places.get(uid)
    }

    /// The dependents of a uid.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// Whether an owner reference of the object at `key` may name the object at that key. If not, the
/// collector checks further.
fn may_be(owner: &Value, there: &ObjectRef, key: &Key) -> bool {
    let text = |name: &str| owner[name].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text("kind").to_lowercase();
    // Of plurals the beginning is known.
    let begins = kind.get(..kind.len().saturating_sub(1)).unwrap_or_default();
    there.key.1 == text("name")
        && (there.key.0.is_empty() || there.key.0 == key.0)
        && there.kind.0 == group
        && there.kind.1.starts_with(begins)
}

fn owner_uids(object: &Value) -> Vec<String> {
    let list = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    list.filter_map(|owner| owner["uid"].as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: usize) -> Key {
        ("n".to_owned(), format!("{name:04}"))
    }

    fn names(works: &BTreeSet<Work>) -> Vec<&str> {
        works.iter().map(|work| work.key.1.as_str()).collect()
    }

    #[test]
    fn follow_up_work_of_a_batch_comes_before_the_next_batch() {
        let on = Controllers::all();
        let mut work_queue = WorkQueue::default();
        let now = Timestamp::UNIX_EPOCH;
        let all = 2 * TOGETHER_MAX + 1;
        for name in 0..all {
            work_queue.wake(on, Workload::Pods, &key(name));
        }
        assert_eq!(work_queue.waiting(), all);
        let first = work_queue.take(now);
        assert_eq!(first.len(), TOGETHER_MAX);
        // One that was taken, and one that waits.
        work_queue.wake(on, Workload::Pods, &key(0));
        work_queue.wake(on, Workload::Pods, &key(all - 1));
        assert_eq!(names(&work_queue.take(now)), ["0000", "0064"]);
        let rest = work_queue.take(now);
        assert_eq!(rest.len(), TOGETHER_MAX);
        assert!(rest.is_disjoint(&first));
        assert_eq!(work_queue.waiting(), 0);
        assert!(work_queue.take(now).is_empty());
    }

    #[test]
    fn small_queue_is_taken_whole_with_the_work_that_is_due() {
        let on = Controllers::all();
        let mut work_queue = WorkQueue::default();
        let now = Timestamp::UNIX_EPOCH;
        work_queue.wake_at(now, Workload::Pods, &key(1));
        work_queue.wake(on, Workload::Pods, &key(2));
        assert_eq!(names(&work_queue.take(now)), ["0001", "0002"]);
    }
}
