//! The kind, namespace and name of one object.

use std::fmt;
use std::sync::Arc;

use innkeeper_contract::{Kind, Reference};
use serde_json::{Value, json};

use crate::ObjectKey;

/// Kind, namespace and name of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The kind; shared by reference, since a module has few kinds and many objects.
    pub kind: Arc<Kind>,
    /// Namespace and name.
    pub key: ObjectKey,
}

impl ObjectRef {
    /// Makes a reference to an object.
    pub fn new(kind: Arc<Kind>, key: ObjectKey) -> Self {
        Self { kind, key }
    }

    /// Returns the body of an apply with the kind, the namespace and the name only. The caller adds
    /// the fields to apply.
    pub fn body(&self) -> Value {
        let namespace = Some(self.key.namespace()).filter(|namespace| !namespace.is_empty());
        json!({
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": { "name": self.key.name(), "namespace": namespace },
        })
    }

    /// Returns the reference in the form of the contract with guests.
    pub fn reference(&self) -> Reference {
        Reference {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.key.namespace().to_string(),
            name: self.key.name().to_string(),
        }
    }
}

impl fmt::Display for ObjectRef {
    /// Writes the form for conditions and logs: `Deployment web/pod-route`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}
