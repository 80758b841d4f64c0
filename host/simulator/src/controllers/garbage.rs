//! Collecting what has lost its owners.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::store::{Key, KindKey};

use super::client::{COLLECTOR, PODS};
use super::follow::Place;
use super::workload::Workload;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Rounds of work before the rest has to wait for the next time.
const ROUNDS_MAX: usize = 1000;

impl Cluster {
    /// Lets the controllers work until there is nothing to do.
    pub(crate) fn work(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut worked = false;
            if self.controllers.namespaces {
                worked |= self.empty_namespaces();
            }
            if self.controllers.garbage_collector {
                worked |= self.collect();
            }
            worked |= self.work_on_workloads();
            if !worked {
                return;
            }
        }
    }

    /// Looks at what has changed. Says whether anything was done.
    fn collect(&mut self) -> bool {
        let mut worked = false;
        while let Some(place) = self.following.garbage.pop_first() {
            worked |= self.look_at(&place);
        }
        worked
    }

    fn look_at(&mut self, place: &Place) -> bool {
        let Some(object) = self.object(&place.kind, &place.key) else { return false };
        let uid = meta(&object, "uid");
        let held = finalizers(&object);
        if !is_terminating(&object) {
            let mut owners = owners(&object).peekable();
            let is_owned = owners.peek().is_some();
            let alive = |owner: &Value| {
                self.following.place(owner["uid"].as_str().unwrap_or_default()).is_some()
            };
            return is_owned && !owners.any(alive) && self.delete_quietly(&place.kind, &place.key);
        }
        if held.iter().any(|one| one == ORPHAN) {
            for child in self.following.dependents(uid) {
                self.disown(&child, uid);
            }
            return self.release(place, ORPHAN);
        }
        if !held.iter().any(|one| one == FOREGROUND) {
            return false;
        }
        let (mut worked, mut blocked) = (false, false);
        for child in self.following.dependents(uid) {
            let Some(dependent) = self.object(&child.kind, &child.key) else { continue };
            let blocks = owners(&dependent)
                .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
            worked |= self.delete_quietly(&child.kind, &child.key);
            blocked |= blocks && self.store.get(&child.kind, &child.key).is_some();
        }
        if !blocked {
            worked |= self.release(place, FOREGROUND);
        }
        worked
    }

    /// Takes a finalizer of the collector off.
    fn release(&mut self, placed: &Place, finalizer: &str) -> bool {
        let Some(mut object) = self.object(&placed.kind, &placed.key) else { return false };
        let kept: Vec<String> =
            finalizers(&object).into_iter().filter(|one| one != finalizer).collect();
        set_finalizers(&mut object, &kept);
        if kept.is_empty() {
            self.remove(&placed.kind, &placed.key, &mut object);
        } else {
            self.put(&placed.kind, &placed.key, &mut object);
        }
        true
    }

    /// Takes an owner off an object.
    fn disown(&mut self, child: &Place, uid: &str) {
        let Some(mut object) = self.object(&child.kind, &child.key) else { return };
        if let Some(list) = object["metadata"]["ownerReferences"].as_array_mut() {
            list.retain(|owner| owner["uid"] != uid);
            if list.is_empty() {
                crate::object::unset(&mut object, "ownerReferences");
            }
        }
        self.put(&child.kind, &child.key, &mut object);
    }

    /// Deletes an object as a controller does. Says whether that changed anything.
    pub(super) fn delete_quietly(&mut self, kind: &KindKey, key: &Key) -> bool {
        let Some(mut object) = self.object(kind, key) else { return false };
        if self.controllers.workloads.has(Workload::Pods) && kind.0.is_empty() && kind.1 == "pods" {
            return !is_terminating(&object) && self.delete_as(&COLLECTOR, &PODS, &object, None);
        }
        if finalizers(&object).is_empty() {
            self.remove(kind, key, &mut object);
            return true;
        }
        if is_terminating(&object) {
            return false;
        }
        object["metadata"]["deletionTimestamp"] = self.time().into();
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        if generation(&object) > 0 {
            object["metadata"]["generation"] = (generation(&object) + 1).into();
        }
        self.put(kind, key, &mut object);
        true
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}
