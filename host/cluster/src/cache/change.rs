//! The change of an object in a cache: [`Change`].

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

/// The source from which a cache learned of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An event of a watch.
    Watch,
    /// A list: the cache had missed the change. Whose write it was is unknown, also if the host
    /// once wrote this version: the list may show an older state than the cache had, since somebody
    /// restored a backup of etcd. An answer to a write or to a GET that contradicts the cache has
    /// this source, too.
    List,
    /// The response to a write of this host.
    Write,
    /// The response to a GET of an object whose state was unknown.
    Lookup,
}

/// An object in one cache appeared, changed or disappeared.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for a cache of all namespaces. An object
    /// may be in a cache of each sort, and each of them reports its change.
    pub namespace: Option<Arc<str>>,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// The object before the change; `None` if the cache had none.
    pub before: Option<Arc<Object>>,
    /// The object after the change; `None` if it was deleted. It has another uid than `before` if
    /// the object was deleted and created again.
    pub after: Option<Arc<Object>>,
    /// The source of the change.
    pub source: Source,
}

impl Change {
    /// Whether the response to a write of this host reported the change.
    pub fn own_write(&self) -> bool {
        self.source == Source::Write
    }
}
