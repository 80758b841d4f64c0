//! What a Module grants of value sources: objects whose values the host copies into desired
//! objects, without the guest seeing them.

use innkeeper_contract::ValueSourceKind;

use crate::ObjectKey;

/// A value source that a Module grants to its guest (an item of `spec.valueSources`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSourceGrant {
    /// The kind of the source.
    pub kind: ValueSourceKind,
    /// Namespace and name of the source.
    pub key: ObjectKey,
    /// The keys that the host may copy; `None` for all.
    pub keys: Option<Vec<String>>,
    /// The namespaces into which the host may copy.
    pub to_namespaces: TargetNamespaces,
}

/// The namespaces into which the host may copy values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetNamespaces {
    /// Every namespace in which the guest may desire objects.
    All,
    /// The namespaces of these names.
    Named(Vec<String>),
}
