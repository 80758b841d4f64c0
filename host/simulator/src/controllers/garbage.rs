//! Collecting what has lost its owners.

use serde_json::Value;

use crate::cluster::Cluster;
use crate::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::store::{Key, KindKey};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Rounds of work before the rest has to wait for the next time.
const ROUNDS_MAX: usize = 1000;

/// An object and where it lies.
struct Placed {
    kind: KindKey,
    key: Key,
    object: Value,
}

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
            if !worked {
                return;
            }
        }
    }

    /// Everything that has owners, is owned or waits for the collector.
    fn concerned(&self) -> Vec<Placed> {
        let mut found = Vec::new();
        for (kind, collection) in self.store.collections() {
            for (key, stored) in &collection.objects {
                let contains =
                    |word: &[u8]| stored.text.windows(word.len()).any(|part| part == word);
                if !contains(b"\"ownerReferences\"") && !contains(b"\"deletionTimestamp\"") {
                    continue;
                }
                found.push(Placed {
                    kind: kind.clone(),
                    key: key.clone(),
                    object: stored.object(),
                });
            }
        }
        found
    }

    fn uids(&self) -> std::collections::BTreeMap<String, bool> {
        let mut uids = std::collections::BTreeMap::new();
        for (_, collection) in self.store.collections() {
            for stored in collection.objects.values() {
                let object = stored.object();
                let waits = finalizers(&object).iter().any(|one| one == FOREGROUND);
                uids.insert(meta(&object, "uid").to_owned(), is_terminating(&object) && waits);
            }
        }
        uids
    }

    /// One round. Says whether anything was done.
    fn collect(&mut self) -> bool {
        let concerned = self.concerned();
        if concerned.is_empty() {
            return false;
        }
        let uids = self.uids();
        let mut worked = false;
        for placed in &concerned {
            let terminating = is_terminating(&placed.object);
            let held = finalizers(&placed.object);
            let uid = meta(&placed.object, "uid");
            if terminating && held.iter().any(|one| one == ORPHAN) {
                for child in owned_by(&concerned, uid) {
                    self.disown(child, uid);
                }
                worked |= self.release(placed, ORPHAN);
            } else if terminating && held.iter().any(|one| one == FOREGROUND) {
                let mut blocked = false;
                for child in owned_by(&concerned, uid) {
                    if self.store.get(&child.kind, &child.key).is_none() {
                        continue;
                    }
                    let blocks = owners(&child.object)
                        .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
                    worked |= self.delete_quietly(&child.kind, &child.key);
                    blocked |= blocks && self.store.get(&child.kind, &child.key).is_some();
                }
                if !blocked {
                    worked |= self.release(placed, FOREGROUND);
                }
            } else if !terminating {
                let alive = owners(&placed.object)
                    .any(|owner| uids.contains_key(owner["uid"].as_str().unwrap_or_default()));
                if owners(&placed.object).next().is_some() && !alive {
                    worked |= self.delete_quietly(&placed.kind, &placed.key);
                }
            }
        }
        worked
    }

    /// Takes a finalizer of the collector off.
    fn release(&mut self, placed: &Placed, finalizer: &str) -> bool {
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
    fn disown(&mut self, child: &Placed, uid: &str) {
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

fn owned_by<'a>(all: &'a [Placed], uid: &'a str) -> impl Iterator<Item = &'a Placed> {
    all.iter().filter(move |placed| owners(&placed.object).any(|owner| owner["uid"] == uid))
}
