//! What a Module grants of value sources: objects whose values the host copies into desired
//! objects, without the guest seeing them.

use innkeeper_contract::{Kind, ValueSourceKind};

use crate::{ObjectKey, object};

/// The most sources of a desired object.
pub const SOURCES_MAX: usize = 8;

/// The most keys that the host copies into a desired object, and that a Module grants of a source.
pub const KEYS_MAX: usize = 256;

/// The most bytes of the values that the host copies into a desired object.
pub const VALUES_BYTES_MAX: usize = 1 << 20;

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

impl TargetNamespaces {
    /// Whether the host may copy into a namespace.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == namespace),
        }
    }
}

/// The kind of a value source, as requests name it.
pub fn kind_of(kind: ValueSourceKind) -> Kind {
    match kind {
        ValueSourceKind::Secret => Kind::namespaced("v1", "Secret", "secrets"),
        ValueSourceKind::ConfigMap => Kind::namespaced("v1", "ConfigMap", "configmaps"),
    }
}

/// Whether objects of a kind may be value sources: `ConfigMap`s and Secrets.
pub fn is_kind_of_sources(kind: &Kind) -> bool {
    object::holds_secrets(kind) || (kind.api_version == "v1" && kind.kind == "ConfigMap")
}
