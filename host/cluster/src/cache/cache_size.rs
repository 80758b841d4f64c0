//! The size of a cache: [`CacheSize`].

use std::sync::Arc;

use innkeeper_contract::Kind;

/// The size of one cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for a cache of all namespaces.
    pub namespace: Option<Arc<str>>,
    /// Whether the cache holds only the metadata of its objects.
    pub metadata_only: bool,
    /// The number of objects.
    pub objects: usize,
    /// The bytes of memory of the objects' compressed texts, of the host's `managedFields` entries,
    /// and of the dictionaries.
    pub bytes: usize,
}
