//! The identity of a cache: [`CacheId`].

use std::fmt;
use std::sync::Arc;

use innkeeper_contract::Kind;

/// The identity of a cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheId {
    pub(super) kind: Arc<Kind>,
    /// `None` for all namespaces, and for cluster-scoped kinds.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) content: Content,
}

/// The part of each object that a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    /// The whole object.
    Whole,
    /// `metadata` only: the API server cuts the rest off.
    Metadata,
}

impl CacheId {
    pub(super) fn covers(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Whether the cache holds the objects of a kind in a namespace.
    pub(super) fn holds(&self, kind: &Kind, namespace: &str) -> bool {
        *self.kind == *kind && self.covers(namespace)
    }
}

impl fmt::Display for CacheId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            None => write!(f, "{}", self.kind),
            Some(namespace) => write!(f, "{} in namespace {namespace}", self.kind),
        }
    }
}
