//! Serving what is defined, and ceasing to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::definition::Definition;
use crate::cluster::Cluster;
use crate::object::{is_terminating, meta};

impl Cluster {
    /// Serves the kind that a definition defines, and says so in its status.
    pub(crate) fn establish(&mut self, object: &Value) {
        if is_terminating(object) {
            return;
        }
        let definition = Arc::new(Definition::read(object));
        self.catalog.define(&definition);
        let key = (String::new(), meta(object, "name").to_owned());
        let kind = ("apiextensions.k8s.io".to_owned(), "customresourcedefinitions".to_owned());
        let Some(stored) = self.object(&kind, &key) else { return };
        let mut stored = std::sync::Arc::unwrap_or_clone(stored);
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
        self.put(&kind, &key, stored);
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
