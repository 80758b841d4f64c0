//! How objects and kinds are addressed.

/// The kind of an object, whatever its version: group and plural.
pub(crate) type KindKey = (String, String);

/// Where an object lies within its kind: namespace and name.
pub(crate) type Key = (String, String);

/// A kind and the key of an object of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    pub(crate) kind: KindKey,
    pub(crate) key: Key,
}
