//! The name of one object, with all that is needed to address it.

use std::fmt;
use std::sync::Arc;

use innkeeper_contract::{Kind, Reference};
use serde_json::{Value, json};

use crate::ObjectKey;

/// Kind, namespace and name of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The kind; shared, since a module has few kinds and many objects.
    pub kind: Arc<Kind>,
    /// Namespace and name.
    pub key: ObjectKey,
}

impl ObjectRef {
    /// A target.
    pub fn new(kind: Arc<Kind>, key: ObjectKey) -> Self {
        Self { kind, key }
    }

    /// The body of an apply that wants nothing but that the object is of this kind and name: what
    /// else is wanted comes on top.
    pub fn body(&self) -> Value {
        let namespace = Some(self.key.namespace()).filter(|namespace| !namespace.is_empty());
        json!({
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": { "name": self.key.name(), "namespace": namespace },
        })
    }

    /// As it crosses the contract.
    pub fn reference(&self) -> Reference {
        Reference {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.key.namespace().to_string(),
            name: self.key.name().to_string(),
        }
    }
}

/// `Deployment web/pod-route`: as people name it in conditions and logs.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}
