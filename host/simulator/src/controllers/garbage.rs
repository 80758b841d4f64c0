//! Collecting what has lost its owners.

use std::sync::Arc;

use serde_json::Value;

use crate::apply::fieldset::{Element, FieldSet, Scalar};
use crate::apply::ledger::Ledger;
use crate::cluster::Cluster;
use crate::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::store::{Key, KindKey};
use crate::tracked::Tracked;

use super::client::{COLLECTOR, PODS};
use super::follow::{Place, TOGETHER_MAX};
use super::owner::Owner;
use super::workload::Workload;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Rounds of work before the rest has to wait for the next time, of as much as is looked at together.
const ROUNDS_MAX: usize = 1000;

impl Cluster {
    /// Lets the controllers work until there is nothing to do.
    pub(crate) fn work(&mut self) {
        let (mut rounds, mut most) = (0, 0);
        while rounds < ROUNDS_MAX * (1 + most / TOGETHER_MAX) {
            rounds += 1;
            let mut worked = self.finish_definitions();
            if self.controllers.namespaces {
                worked |= self.empty_namespaces();
            }
            if self.controllers.garbage_collector {
                worked |= self.collect();
            }
            worked |= self.work_on_workloads();
            most = most.max(self.following.waiting());
            if !worked {
                return;
            }
        }
    }

    /// Looks at what has changed. Says whether anything was done.
    fn collect(&mut self) -> bool {
        let mut worked = false;
        // A kind may be served by now that was not.
        let waiting = std::mem::take(&mut self.following.unserved);
        self.following.garbage.extend(waiting);
        while let Some(place) = self.following.garbage.pop_first() {
            worked |= self.look_at(&place);
        }
        worked
    }

    fn look_at(&mut self, place: &Place) -> bool {
        let Some(object) = self.object(&place.kind, &place.key) else { return false };
        let uid = meta(&object, "uid");
        if !is_terminating(&object) {
            return self.judge(place, &object);
        }
        if holds(&object, ORPHAN) {
            for child in self.following.dependents(uid) {
                self.disown(&child, &[uid]);
            }
            return self.release(place, ORPHAN);
        }
        if !holds(&object, FOREGROUND) {
            return false;
        }
        let (mut worked, mut blocked) = (false, false);
        for child in self.following.dependents(uid) {
            let Some(dependent) = self.object(&child.kind, &child.key) else { continue };
            worked |= !is_terminating(&dependent) && self.judge(&child, &dependent);
            let left = self.object(&child.kind, &child.key);
            blocked |= left.is_some_and(|left| {
                owners(&left)
                    .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
            });
        }
        if !blocked {
            worked |= self.release(place, FOREGROUND);
        }
        worked
    }

    /// Deletes what has no owner any more, and takes the owners off that are gone or about to go from what has another.
    fn judge(&mut self, place: &Place, object: &Value) -> bool {
        for reference in owners(object) {
            self.report_elsewhere(place, object, reference);
        }
        let (mut lost, mut waits, mut solid) = (Vec::new(), false, false);
        for reference in owners(object) {
            match self.owner(place, reference) {
                Owner::There(owner) if is_terminating(&owner) && holds(&owner, FOREGROUND) => {
                    waits = true;
                }
                Owner::There(_) => {
                    solid = true;
                    continue;
                }
                Owner::Absent => {}
                // Whoever else may own it: it stays.
                Owner::Unserved => {
                    self.following.unserved.insert(place.clone());
                    return false;
                }
                Owner::Impossible => return false,
            }
            lost.push(reference["uid"].as_str().unwrap_or_default());
        }
        if lost.is_empty() {
            return false;
        }
        if solid {
            return self.disown(place, &lost);
        }
        // What goes because its owner waits makes its owner wait for what it owns itself.
        let parent = waits && !self.following.dependents(meta(object, "uid")).is_empty();
        self.delete_in(&place.kind, &place.key, parent)
    }

    /// Takes a finalizer of the collector off.
    fn release(&mut self, placed: &Place, finalizer: &str) -> bool {
        let Some(object) = self.object(&placed.kind, &placed.key) else { return false };
        let mut object = Arc::unwrap_or_clone(object);
        let kept: Vec<String> =
            finalizers(&object).into_iter().filter(|one| one != finalizer).collect();
        set_finalizers(&mut object, &kept);
        if kept.is_empty() {
            self.remove(&placed.kind, &placed.key, &mut object);
        } else {
            self.put(&placed.kind, &placed.key, object);
        }
        true
    }

    /// Takes owners off an object, and out of what its managers own. Says whether there was one.
    fn disown(&mut self, child: &Place, uids: &[&str]) -> bool {
        let Some(object) = self.object(&child.kind, &child.key) else { return false };
        let mut object = Arc::unwrap_or_clone(object);
        let Some(list) = object["metadata"]["ownerReferences"].as_array_mut() else { return false };
        let before = list.len();
        list.retain(|owner| !uids.iter().any(|uid| owner["uid"] == *uid));
        let (left, empty) = (list.len(), list.is_empty());
        if left == before {
            return false;
        }
        if empty {
            crate::object::unset(&mut object, "ownerReferences");
        }
        forget_owners(&mut object, uids, empty);
        self.put(&child.kind, &child.key, object);
        true
    }

    /// Deletes an object as a controller does. Says whether that changed anything.
    pub(crate) fn delete_quietly(&mut self, kind: &KindKey, key: &Key) -> bool {
        self.delete_in(kind, key, false)
    }

    /// The same, perhaps in the foreground: it waits for what it owns.
    fn delete_in(&mut self, kind: &KindKey, key: &Key, foreground: bool) -> bool {
        let Some(object) = self.object(kind, key) else { return false };
        if self.controllers.workloads.has(Workload::Pods) && kind.0.is_empty() && kind.1 == "pods" {
            return !is_terminating(&object) && self.delete_as(&COLLECTOR, &PODS, &object, None);
        }
        let mut object = Arc::unwrap_or_clone(object);
        let mut held = finalizers(&object);
        if foreground && !held.iter().any(|one| one == FOREGROUND) {
            held.push(FOREGROUND.to_owned());
        }
        if held.is_empty() {
            self.remove(kind, key, &mut object);
            return true;
        }
        if is_terminating(&object) {
            return false;
        }
        set_finalizers(&mut object, &held);
        object["metadata"]["deletionTimestamp"] = self.time().into();
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        if generation(&object) > 0 {
            object["metadata"]["generation"] = (generation(&object) + 1).into();
        }
        self.put(kind, key, object);
        true
    }
}

/// Nobody owns the owners any more that were taken off.
fn forget_owners(object: &mut Tracked, uids: &[&str], all: bool) {
    let path = ["metadata", "ownerReferences"].map(Element::field);
    let mut gone = FieldSet::default();
    if all {
        gone.insert(&path);
    } else {
        let [metadata, owners] = path;
        for uid in uids {
            let uid = Element::Key(vec![("uid".to_owned(), Scalar((*uid).into()))]);
            gone.insert(&[metadata.clone(), owners.clone(), uid]);
        }
    }
    let mut managers = object.ledger().managers();
    for (_, owned) in managers.iter_mut() {
        owned.change().cut(&gone);
    }
    managers.retain(|_, owned| !owned.set().is_empty());
    object.set_ledger(Ledger::of(managers));
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

fn holds(object: &Value, finalizer: &str) -> bool {
    finalizers(object).iter().any(|one| one == finalizer)
}
