//! What the cluster holds, as far as modules read it: one shared cache per kind and scope.
//!
//! A module opens a [`View`] with its own identity. The first one's session fills a cache; others are
//! admitted to it after an access review of their own, asked again from time to time. When
//! the one that fills it goes or loses its right, another admitted one takes over.
//!
//! # Guarantees
//! - What is read from a [`Frozen`] is of one moment, over all kinds.
//! - A cache is not read before it has been listed once.
//! - Own writes are seen at once ([`Caches::wrote`]) and pass for one's own ([`Caches::writing`]).
//! - A watch that dies in silence is resumed after `watch_timeout + watch_grace` at the latest.
//! - Kinds that are not served, or may not be read, work as soon as they are or may.
//!
//! # Caveats
//! - A cache may lag behind the server. Writes carry guards for that reason; what they prove wrong
//!   is said by [`Caches::mark_unknown`].

mod cell;
mod change;
mod follow;
mod frozen;
mod objects;
mod raw;
mod review;
mod shared;
mod view;

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Key, Object};

pub use change::{Change, KindState, Listener, Source, StateChange};
pub use frozen::{Frozen, Seen, Unreadable};
pub use view::{Namespaces, View};

use crate::{Env, Session};
use cell::Content;
use shared::Shared;

/// What learns of writes: not the caches of metadata, the answers being whole objects.
const WHOLE: &[Content] = &[Content::Whole];

const ALL: &[Content] = &[Content::Whole, Content::Metadata];

/// All caches of the host. Clones are the same caches.
#[derive(Clone)]
pub struct Caches {
    shared: Arc<Shared>,
}

/// How much one cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for one of all namespaces.
    pub namespace: Option<Arc<str>>,
    /// It holds the metadata of its objects only.
    pub metadata_only: bool,
    /// Objects in it.
    pub objects: usize,
    /// Bytes of their texts and of our `managedFields` entries.
    pub bytes: usize,
}

impl Caches {
    /// No caches yet. Has to be used within a tokio runtime.
    pub fn new(env: Env, listener: Arc<dyn Listener>) -> Self {
        Self { shared: Arc::new(Shared::new(env, listener)) }
    }

    /// Opens caches of these kinds for a module, as the session's identity. Returns at once:
    /// the view says which kinds it can read yet.
    ///
    /// A module that changes opens its new view before it drops the old one; what both have in common
    /// then stays as it is. Dropping the view closes it; caches that nobody views are closed.
    pub fn open(
        &self,
        session: &Session,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.shared, session, module, kinds, namespaces, Content::Whole)
    }

    /// The same with the metadata of objects only: for what is big and rarely read, and then by
    /// a GET (sources of modules, definitions). Objects have no more than `metadata` in
    /// their text. [`Caches::wrote`] does not reach these caches: they learn from their watch.
    pub fn open_metadata(
        &self,
        session: &Session,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.shared, session, module, kinds, namespaces, Content::Metadata)
    }

    /// A write of an object is about to be sent. While the guard lives, what watches say of the
    /// object waits: an event often overtakes the answer to the write that caused it, and would pass
    /// for somebody else's. So: take the guard, send the write, tell its answer
    /// ([`Caches::wrote`], [`Caches::deleted`], [`Caches::mark_unknown`]), drop the guard.
    #[must_use = "events wait for as long as the guard lives"]
    pub fn writing(&self, kind: &Kind, key: &Key) -> Writing {
        let kind = Arc::new(kind.clone());
        self.shared.write_begins(&kind, key);
        Writing { shared: self.shared.clone(), kind, key: key.clone() }
    }

    /// A write was answered by this object: it is taken like an event of the watch, unless the
    /// cache has something newer; the event that follows is not told again.
    pub fn wrote(&self, kind: &Kind, object: &Arc<Object>) {
        self.shared.each(kind, object.key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.wrote(object.clone())
        });
    }

    /// A delete was answered by "gone": the object with this uid goes, and what a late
    /// event or answer says of it is dropped.
    pub fn deleted(&self, kind: &Kind, key: &Key, uid: &str) {
        self.shared.each(kind, key.namespace(), Source::Write, ALL, |objects, now| {
            objects.deleted(key, uid, now)
        });
    }

    /// What is cached under this name is wrong or doubtful: the answer to a write was lost,
    /// or proved it wrong. Lookups answer [`Seen::Unknown`] until an event, a relist or
    /// [`Caches::settle`].
    pub fn mark_unknown(&self, kind: &Kind, key: &Key) {
        self.shared.each(kind, key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.mark_unknown(key);
            None
        });
    }

    /// A live GET has been answered, by an object or by "not found".
    pub fn settle(&self, kind: &Kind, key: &Key, found: Option<&Arc<Object>>) {
        self.shared.each(kind, key.namespace(), Source::Lookup, WHOLE, |objects, _| {
            objects.settle(key, found.cloned())
        });
    }

    /// Something in this API group changed (a CustomResourceDefinition was established): its kinds
    /// that are not served are looked for at once, and those that are read are compared with discovery
    /// again. Say [`Cluster::kinds_changed`](crate::Cluster::kinds_changed) first.
    pub fn kind_may_be_served(&self, group: &str) {
        self.shared.look_for(group);
    }

    /// How much each cache holds, ordered by kind and namespace.
    pub fn sizes(&self) -> Vec<CacheSize> {
        self.shared.sizes()
    }
}

/// A write that is under way: see [`Caches::writing`].
pub struct Writing {
    shared: Arc<Shared>,
    kind: Arc<Kind>,
    key: Key,
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writing({} {})", self.kind, self.key)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.shared.write_ends(&self.kind, &self.key);
    }
}

#[cfg(test)]
mod tests;
