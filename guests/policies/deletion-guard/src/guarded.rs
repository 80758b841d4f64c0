use innkeeper_sdk::Labels;
use serde::Deserialize;

use crate::Parameters;

/// The group of databases.
pub(crate) const GROUP: &str = "exp.wheel.jp";

/// The kind of databases.
pub(crate) const KIND: &str = "PostgreSQL";

/// What the policy reads of an object of any kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AnyObject {
    /// Metadata.
    pub(crate) metadata: GuardedMetadata,
}

/// The metadata that decides whether an object may be deleted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GuardedMetadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) labels: Option<Labels>,
    pub(crate) annotations: Option<Labels>,
    pub(crate) owner_references: Option<Vec<Owner>>,
    pub(crate) deletion_timestamp: Option<String>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Owner {
    /// Returns whether the owner is a database, in any version of the kind.
    pub(crate) fn is_database(&self) -> bool {
        self.kind == KIND && self.api_version.split('/').next() == Some(GROUP)
    }
}

impl GuardedMetadata {
    /// Returns whether the object has the label that protects it.
    pub(crate) fn is_protected(&self, parameters: &Parameters) -> bool {
        self.label(&parameters.label).is_some()
    }

    /// Returns whether a user has released the object: the annotation names it, so a copy of the
    /// annotation on another object releases nothing.
    pub(crate) fn is_released(&self, parameters: &Parameters) -> bool {
        let value =
            self.annotations.as_ref().and_then(|all| all.get(&parameters.release_annotation));
        !self.name.is_empty() && value == Some(&self.name)
    }

    /// Returns whether the object is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns whether this object stays until a user releases it.
    pub(crate) fn is_held(&self, parameters: &Parameters) -> bool {
        !self.is_terminating() && !self.is_released(parameters)
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }
}
