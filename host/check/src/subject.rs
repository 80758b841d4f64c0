//! The guest that is checked, and the objects with which it is checked.

use innkeeper_contract::{Kind, Manifest};
use serde_json::Value;

/// A guest that reconciles, and what a cluster needs to run it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of its Module.
    pub name: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its Module, with the absolute path of the component in `spec.source.file`.
    pub module: Value,
    /// Objects that exist before the host starts: the rights of the Module's account, definitions
    /// that the manifest does not bring, namespaces, and what the primaries refer to.
    pub before: Vec<Value>,
    /// Primaries, as users write them.
    pub samples: Vec<Value>,
    /// Fields of the objects that hold a history, as paths such as `.status.lastRun`: they may
    /// differ.
    pub history: Vec<String>,
}

impl Subject {
    /// The kinds whose objects the guest makes or changes, its primary's first.
    pub fn kinds(&self) -> Vec<&Kind> {
        let owned = self.manifest.owned.iter().map(|owned| &owned.kind);
        let mut kinds: Vec<&Kind> = self.manifest.primary.iter().collect();
        for kind in owned {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// A primary with the properties that the schema of its kind requires; `None` if there is no
    /// schema.
    pub fn smallest_sample(&self) -> Option<Value> {
        crate::variants::smallest(self)
    }

    /// Whether an object is a primary of the guest.
    pub fn is_primary(&self, object: &Value) -> bool {
        self.manifest.primary.as_ref().is_some_and(|kind| {
            object["apiVersion"] == kind.api_version.as_str() && object["kind"] == kind.kind.as_str()
        })
    }
}
