//! Serving what is defined, and ceasing to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::definition::Definition;
use crate::apply::managed_fields::{Manager, Operation, decode, encode};
use crate::apply::updater::{Write, update};
use crate::cluster::Cluster;
use crate::kinds;
use crate::object::{is_terminating, meta, without_managers};
use crate::store::Key;

/// Where definitions are.
pub(super) const GROUP: &str = "apiextensions.k8s.io";

impl Cluster {
    /// Serves the kind that a definition defines, and says so in its status.
    pub(crate) fn establish(&mut self, object: &Value) {
        if is_terminating(object) {
            return;
        }
        let definition = Arc::new(Definition::read(object));
        self.catalog.define(&definition);
        self.fill(&definition);
        let key = (String::new(), meta(object, "name").to_owned());
        let kind = ("apiextensions.k8s.io".to_owned(), "customresourcedefinitions".to_owned());
        let Some(stored) = self.object(&kind, &key) else { return };
        let old = std::sync::Arc::unwrap_or_clone(stored);
        let mut stored = old.clone();
        let names = stored["spec"]["names"].clone();
        let conditions =
            stored["status"]["conditions"].as_array().is_some_and(|list| !list.is_empty());
        if conditions && stored["status"]["acceptedNames"] == names {
            return;
        }
        let now = self.time();
        let storage: Vec<&str> = definition
            .versions
            .iter()
            .filter(|version| version.storage)
            .map(|version| version.name.as_str())
            .collect();
        stored["status"] = json!({
            "acceptedNames": names,
            "conditions": [
                {"lastTransitionTime": now, "message": "no conflicts found", "reason": "NoConflicts", "status": "True", "type": "NamesAccepted"},
                {"lastTransitionTime": now, "message": "the initial names have been accepted", "reason": "InitialNamesAccepted", "status": "True", "type": "Established"},
            ],
            "storedVersions": storage,
        });
        self.own_status(&old, &mut stored);
        self.put(&kind, &key, stored);
    }

    /// What is stored is read with the defaults of now.
    fn fill(&mut self, definition: &Definition) {
        let storage = definition.versions.iter().find(|version| version.storage);
        let kind = storage.and_then(|version| {
            self.catalog.get(&definition.group, &version.name, &definition.plural)
        });
        let Some(kind) = kind.cloned() else { return };
        let collection = self.store.collection(&kind.key);
        let changed: Vec<(Key, Value)> = collection
            .into_iter()
            .flat_map(|one| &one.objects)
            .filter_map(|(key, stored)| {
                let mut object = Arc::unwrap_or_clone(stored.object());
                super::default::default(kind.schema(), &mut object);
                (object != *stored.object()).then(|| (key.clone(), object))
            })
            .collect();
        for (key, object) in changed {
            self.store.reform(&kind.key, &key, &object);
            self.remember_raw(&kind.key, &key, true);
        }
    }

    /// The API server itself writes the status.
    fn own_status(&self, old: &Value, new: &mut Value) {
        let Some(kind) = self.catalog.get(GROUP, "v1", "customresourcedefinitions") else { return };
        let version = kind.api_version();
        let ignored = kinds::ignored(kind, "status");
        let now = self.time();
        let write = Write { node: kind.node(), version: &version, ignored: &ignored, now: &now };
        let manager = Manager::new("kube-apiserver", Operation::Update, &version, "status");
        let managers = decode(old["metadata"].get("managedFields")).unwrap_or_default();
        if managers.is_empty() {
            return;
        }
        let (old, bare) = (without_managers(old), without_managers(new));
        let managers = update(&write, &old, &bare, managers, &manager);
        if let Some(list) = encode(&managers) {
            new["metadata"]["managedFields"] = list;
        }
    }

    /// Serves a kind no more; its objects go with it.
    pub(crate) fn retire(&mut self, object: &Value) {
        let definition = Definition::read(object);
        self.catalog.forget(&definition.group, &definition.plural);
        let kind = (definition.group.clone(), definition.plural.clone());
        let keys: Vec<_> = self
            .store
            .collection(&kind)
            .map(|one| one.objects.keys().cloned().collect())
            .unwrap_or_default();
        for key in keys {
            if let Some(last) = self.object(&kind, &key) {
                let mut last = std::sync::Arc::unwrap_or_clone(last);
                self.remove(&kind, &key, &mut last);
            }
        }
    }
}
