//! The garbage collector: deletes objects whose owners are gone.

use std::sync::Arc;

use serde_json::Value;

use crate::apply::fieldset::{Element, FieldSet, Scalar};
use crate::apply::ledger::Ledger;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::types::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::types::object_key::{Key, KindKey};

use crate::controllers::client;
use crate::controllers::client::{COLLECTOR, PODS};
use crate::controllers::owner_lookup;
use crate::controllers::owner_lookup::OwnerLookup;
use crate::state::controller_set::Workload;
use crate::types::object_key::ObjectRef;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Works off the queue of the collector. Returns whether anything was done.
pub(crate) fn collect(cluster: &mut Cluster) -> bool {
    let mut worked = false;
    // The kind may be served now.
    let waiting = std::mem::take(&mut cluster.work_queue.unserved);
    cluster.work_queue.garbage.extend(waiting);
    while let Some(place) = cluster.work_queue.garbage.pop_first() {
        worked |= process(cluster, &place);
    }
    worked
}

fn process(cluster: &mut Cluster, place: &ObjectRef) -> bool {
    let Some(object) = cluster.object(&place.kind, &place.key) else { return false };
    let uid = meta(&object, "uid");
    if !is_terminating(&object) {
        return collect_if_unowned(cluster, place, &object);
    }
    if holds(&object, ORPHAN) {
        for child in cluster.work_queue.dependents(uid) {
            remove_owner_references(cluster, &child, &[uid]);
        }
        return remove_finalizer(cluster, place, ORPHAN);
    }
    if !holds(&object, FOREGROUND) {
        return false;
    }
    let (mut worked, mut blocked) = (false, false);
    for child in cluster.work_queue.dependents(uid) {
        let Some(dependent) = cluster.object(&child.kind, &child.key) else { continue };
        worked |= !is_terminating(&dependent) && collect_if_unowned(cluster, &child, &dependent);
        let left = cluster.object(&child.kind, &child.key);
        blocked |= left.is_some_and(|left| {
            owners(&left).any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
        });
    }
    if !blocked {
        worked |= remove_finalizer(cluster, place, FOREGROUND);
    }
    worked
}

/// Deletes an object without owners. From one that has another owner it removes the references to
/// those that are gone or about to go.
fn collect_if_unowned(cluster: &mut Cluster, place: &ObjectRef, object: &Value) -> bool {
    for reference in owners(object) {
        owner_lookup::report_elsewhere(cluster, place, object, reference);
    }
    let (mut lost, mut waits, mut solid) = (Vec::new(), false, false);
    for reference in owners(object) {
        match owner_lookup::find(cluster, place, reference) {
            OwnerLookup::Found(owner) if is_terminating(&owner) && holds(&owner, FOREGROUND) => {
                waits = true;
            }
            OwnerLookup::Found(_) => {
                solid = true;
                continue;
            }
            OwnerLookup::Absent => {}
            // An existing owner keeps it, whatever its other owners are.
            OwnerLookup::NotServed => {
                cluster.work_queue.unserved.insert(place.clone());
                return false;
            }
            OwnerLookup::Invalid => return false,
        }
        lost.push(reference["uid"].as_str().unwrap_or_default());
    }
    if lost.is_empty() {
        return false;
    }
    if solid {
        return remove_owner_references(cluster, place, &lost);
    }
    // An object that is deleted in the foreground of its owner makes its owner wait for its own
    // dependents.
    let parent = waits && !cluster.work_queue.dependents(meta(object, "uid")).is_empty();
    delete_in(cluster, &place.kind, &place.key, parent)
}

/// Removes a finalizer of the collector.
fn remove_finalizer(cluster: &mut Cluster, placed: &ObjectRef, finalizer: &str) -> bool {
    let Some(object) = cluster.object(&placed.kind, &placed.key) else { return false };
    let mut object = Arc::unwrap_or_clone(object);
    let kept: Vec<String> =
        finalizers(&object).into_iter().filter(|one| one != finalizer).collect();
    set_finalizers(&mut object, &kept);
    if kept.is_empty() {
        cluster.remove(&placed.kind, &placed.key, &mut object);
    } else {
        cluster.put(&placed.kind, &placed.key, object);
    }
    true
}

/// Removes owner references from an object, and from the fields of its managers. Returns whether
/// there was one.
fn remove_owner_references(cluster: &mut Cluster, child: &ObjectRef, uids: &[&str]) -> bool {
    let Some(object) = cluster.object(&child.kind, &child.key) else { return false };
    let mut object = Arc::unwrap_or_clone(object);
    let Some(list) = object["metadata"]["ownerReferences"].as_array_mut() else { return false };
    let before = list.len();
    list.retain(|owner| !uids.iter().any(|uid| owner["uid"] == *uid));
    let (left, empty) = (list.len(), list.is_empty());
    if left == before {
        return false;
    }
    if empty {
        crate::types::object::unset(&mut object, "ownerReferences");
    }
    forget_owners(&mut object, uids, empty);
    cluster.put(&child.kind, &child.key, object);
    true
}

/// Deletes an object as a controller does. Returns whether that changed anything.
pub(crate) fn delete_quietly(cluster: &mut Cluster, kind: &KindKey, key: &Key) -> bool {
    delete_in(cluster, kind, key, false)
}

/// The same, optionally in the foreground: the object waits for its dependents.
fn delete_in(cluster: &mut Cluster, kind: &KindKey, key: &Key, foreground: bool) -> bool {
    let Some(object) = cluster.object(kind, key) else { return false };
    if cluster.controllers.workloads.has(Workload::Pods) && kind.0.is_empty() && kind.1 == "pods" {
        return !is_terminating(&object)
            && client::delete(cluster, &COLLECTOR, &PODS, &object, None);
    }
    let mut object = Arc::unwrap_or_clone(object);
    let mut held = finalizers(&object);
    if foreground && !held.iter().any(|one| one == FOREGROUND) {
        held.push(FOREGROUND.to_owned());
    }
    if held.is_empty() {
        cluster.remove(kind, key, &mut object);
        return true;
    }
    if is_terminating(&object) {
        return false;
    }
    set_finalizers(&mut object, &held);
    object["metadata"]["deletionTimestamp"] = cluster.time().into();
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    if generation(&object) > 0 {
        object["metadata"]["generation"] = (generation(&object) + 1).into();
    }
    cluster.put(kind, key, object);
    true
}

/// Removes the dropped owner references from the fields of managers.
fn forget_owners(object: &mut ManagedObject, uids: &[&str], all: bool) {
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
