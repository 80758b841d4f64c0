//! Deleting definitions: their objects go first.

use std::sync::Arc;

use serde_json::{Value, json};

use super::registration::GROUP;
use crate::cluster::Cluster;
use crate::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::store::{Key, KindKey};

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn definitions() -> KindKey {
    (GROUP.to_owned(), "customresourcedefinitions".to_owned())
}

fn ends(object: &mut Value, now: &str, reason: &str, message: &str) {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().position(|one| one["type"] == "Terminating");
    let since = before.map_or(now.into(), |index| conditions[index]["lastTransitionTime"].clone());
    let condition = json!({"type": "Terminating", "status": "True", "lastTransitionTime": since, "reason": reason, "message": message});
    match before {
        Some(index) => conditions[index] = condition,
        None => conditions.push(condition),
    }
    object["status"]["conditions"] = conditions.into();
}

impl Cluster {
    /// Begins to delete a definition. Gives it as the delete answers.
    pub(crate) fn delete_definition(&mut self, object: &Value, dry_run: bool) -> Value {
        let mut object = object.clone();
        let now = self.time();
        object["metadata"]["deletionTimestamp"] = now.as_str().into();
        let mut held = finalizers(&object);
        if !held.iter().any(|one| one == CLEANUP) {
            held.push(CLEANUP.to_owned());
            set_finalizers(&mut object, &held);
        }
        let message =
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        ends(&mut object, &now, "InstanceDeletionPending", message);
        if !dry_run {
            let key = (String::new(), meta(&object, "name").to_owned());
            object = Arc::unwrap_or_clone(self.put(&definitions(), &key, object));
            self.ending.insert(key.1);
            self.finish_definitions();
        }
        object
    }

    /// Deletes the objects of definitions that are being deleted, and lets those go that have none left. Says whether
    /// anything was done.
    pub(crate) fn finish_definitions(&mut self) -> bool {
        let mut worked = false;
        for name in self.ending.clone() {
            let key = (String::new(), name);
            let Some(definition) =
                self.object(&definitions(), &key).filter(|one| is_terminating(one))
            else {
                self.ending.remove(&key.1);
                continue;
            };
            worked |= self.finish_definition(&key, Arc::unwrap_or_clone(definition));
        }
        worked
    }

    fn finish_definition(&mut self, key: &Key, mut definition: Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind =
            (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]));
        let inside = |cluster: &Self| -> Vec<Key> {
            let collection = cluster.store.collection(&kind);
            collection.map(|one| one.objects.keys().cloned().collect()).unwrap_or_default()
        };
        let mut worked = false;
        for object in inside(self) {
            worked |= self.delete_quietly(&kind, &object);
        }
        let before = definition.clone();
        if !inside(self).is_empty() {
            let message = "CustomResource deletion is in progress";
            ends(&mut definition, &self.time(), "InstanceDeletionInProgress", message);
        } else if finalizers(&definition).iter().any(|one| one == CLEANUP) {
            let mut held = finalizers(&definition);
            held.retain(|one| one != CLEANUP);
            set_finalizers(&mut definition, &held);
            if held.is_empty() {
                self.remove(&definitions(), key, &mut definition);
                self.retire(&definition);
                self.ending.remove(&key.1);
                return true;
            }
        }
        if definition != before {
            self.put(&definitions(), key, definition);
            worked = true;
        }
        worked
    }
}
