//! What the cluster holds, as far as modules read it: one shared cache per kind and scope.
//!
//! A module opens a [`View`] with its own identity. The first one's session fills a cache; others
//! are admitted to it after an access review of their own, asked again from time to time. When the
//! one that fills it goes or loses its right, another admitted one takes over.
//!
//! # Guarantees
//! - What is read from a [`CacheSnapshot`] is of one moment, over all kinds.
//! - A cache is not read before it has been listed once.
//! - Own writes are seen at once ([`Caches::record_write`]) and pass for one's own
//!   ([`Caches::begin_write`]).
//! - A watch that dies in silence is resumed after `watch_timeout + watch_grace` at the latest.
//! - Kinds that are not served, or may not be read, work as soon as they are or may.
//!
//! # Caveats
//! - A cache may lag behind the server. Writes carry guards for that reason; what they prove wrong
//!   is said by [`Caches::mark_unknown`].

mod cell;
mod change;
mod live_objects;
mod objects;
mod owner_index;
mod raw;
mod review;
mod shared;
mod snapshot;
mod view;
mod watch;

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

pub use change::{Change, KindState, Listener, Source, StateChange};
pub use snapshot::{CacheReadError, CacheSnapshot, Lookup};
pub use view::{Namespaces, View};

use crate::{ApiClient, Env};
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
    /// A module that changes opens its new view before it drops the old one; what both have in
    /// common then stays as it is. Dropping the view closes it; caches that nobody views are
    /// closed.
    pub fn open(
        &self,
        client: &ApiClient,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.shared, client, module, kinds, namespaces, Content::Whole)
    }

    /// The same with the metadata of objects only: for what is big and rarely read, and then by a
    /// GET (sources of modules, definitions). Objects have no more than `metadata` in their text.
    /// [`Caches::record_write`] does not reach these caches: they learn from their watch.
    pub fn open_metadata(
        &self,
        client: &ApiClient,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.shared, client, module, kinds, namespaces, Content::Metadata)
    }

    /// A write of an object is about to be sent. While the guard lives, what watches say of the
    /// object waits: an event often overtakes the answer to the write that caused it, and would
    /// pass for somebody else's. So: take the guard, send the write, tell its answer
    /// ([`Caches::record_write`], [`Caches::record_deletion`], [`Caches::mark_unknown`]), drop the
    /// guard.
    #[must_use = "events wait for as long as the guard lives"]
    pub fn begin_write(&self, kind: &Kind, key: &ObjectKey) -> InFlightWrite {
        let kind = Arc::new(kind.clone());
        self.shared.write_begins(&kind, key);
        InFlightWrite { shared: self.shared.clone(), kind, key: key.clone() }
    }

    /// A write was answered by this object: it is taken like an event of the watch, unless the
    /// cache has something newer; the event that follows is not told again.
    pub fn record_write(&self, kind: &Kind, object: &Arc<Object>) {
        self.shared.each(kind, object.key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.record_write(object.clone())
        });
    }

    /// A delete was answered by "gone": the object with this uid goes, and what a late
    /// event or answer says of it is dropped.
    pub fn record_deletion(&self, kind: &Kind, key: &ObjectKey, uid: &str) {
        self.shared.each(kind, key.namespace(), Source::Write, ALL, |objects, now| {
            objects.record_deletion(key, uid, now)
        });
    }

    /// What is cached under this name is wrong or doubtful: the answer to a write was lost,
    /// or proved it wrong. Lookups answer [`Lookup::Unknown`] until an event, a relist or
    /// [`Caches::resolve_unknown`].
    pub fn mark_unknown(&self, kind: &Kind, key: &ObjectKey) {
        self.shared.each(kind, key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.mark_unknown(key);
            None
        });
    }

    /// A live GET has been answered, by an object or by "not found".
    pub fn resolve_unknown(&self, kind: &Kind, key: &ObjectKey, found: Option<&Arc<Object>>) {
        self.shared.each(kind, key.namespace(), Source::Lookup, WHOLE, |objects, _| {
            objects.resolve_unknown(key, found.cloned())
        });
    }

    /// Something in this API group changed (a CustomResourceDefinition was established): its kinds
    /// that are not served are looked for at once, and those that are read are compared with
    /// discovery again. Say [`Cluster::kinds_changed`](crate::Cluster::kinds_changed) first.
    pub fn kind_may_be_served(&self, group: &str) {
        self.shared.look_for(group);
    }

    /// How much each cache holds, ordered by kind and namespace.
    pub fn sizes(&self) -> Vec<CacheSize> {
        self.shared.sizes()
    }
}

/// A write that is under way: see [`Caches::begin_write`].
pub struct InFlightWrite {
    shared: Arc<Shared>,
    kind: Arc<Kind>,
    key: ObjectKey,
}

impl std::fmt::Debug for InFlightWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writing({} {})", self.kind, self.key)
    }
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        self.shared.write_ends(&self.kind, &self.key);
    }
}

#[cfg(test)]
mod tests;
