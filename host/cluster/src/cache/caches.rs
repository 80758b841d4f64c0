//! The caches as the operator uses them: [`Caches`].

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};

use super::cache_id::Content;
use super::cache_size::CacheSize;
use super::change::Source;
use super::in_flight_write::InFlightWrite;
use super::known_version::KnownVersion;
use super::listener::Listener;
use super::store::CacheStore;
use super::view::{Namespaces, View, ViewedKind};
use crate::{ApiClient, Env};

/// The caches that take the object of a write response. A cache of metadata does not: the response
/// is a whole object.
const WHOLE: &[Content] = &[Content::Whole];

const ALL: &[Content] = &[Content::Whole, Content::Metadata];

/// All caches of the host. Clones are the same caches.
#[derive(Clone)]
pub struct Caches {
    store: Arc<CacheStore>,
}

impl Caches {
    /// Makes an empty set of caches. It must be used within a tokio runtime.
    pub fn new(env: Env, listener: Arc<dyn Listener>) -> Self {
        Self { store: Arc::new(CacheStore::new(env, listener)) }
    }

    /// Opens caches of these kinds, with every field, for a module, with the client's identity.
    /// Returns at once: [`View::states`] gives the kinds that the view can read already.
    ///
    /// A module that changes opens its new view before it drops the old one: caches of both views
    /// stay open. A dropped view is closed, and so is each cache that no view uses any more.
    pub fn open(
        &self,
        client: &ApiClient,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        self.open_fields(client, module, &whole(kinds), namespaces)
    }

    /// The same with some fields of the objects. If the objects of an open cache lack some of them,
    /// the host lists the kind again while the watch goes on, and the view can read it after that.
    pub fn open_fields(
        &self,
        client: &ApiClient,
        module: &str,
        kinds: &[ViewedKind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.store, client, module, kinds, namespaces, Content::Whole)
    }

    /// Opens caches with only the metadata of objects, for large objects that the host rarely
    /// reads, and then by a GET (sources of modules, definitions). The text of an object has no
    /// more than its `metadata`. [`Caches::record_write`] does not reach these caches: they learn
    /// of a write from their watch.
    pub fn open_metadata(
        &self,
        client: &ApiClient,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
    ) -> View {
        View::open(&self.store, client, module, &whole(kinds), namespaces, Content::Metadata)
    }

    /// Announces the write of an object. While the guard lives, watch events of the object wait:
    /// an event often arrives before the response to the write that caused it, and the listener
    /// would take it for a change by another client. So a writer takes the guard, sends the write,
    /// records the response ([`Caches::record_write`], [`Caches::record_deletion`] or
    /// [`Caches::mark_unknown`]), and drops the guard.
    #[must_use = "events wait for as long as the guard lives"]
    pub fn begin_write(&self, kind: &Kind, key: &ObjectKey) -> InFlightWrite {
        InFlightWrite::begin(&self.store, kind, key)
    }

    /// Records the object of a write response. It enters like a watch event, unless the cache has a
    /// newer object; the listener gets no notice of the event that follows it.
    ///
    /// If the response contradicts the caches, since somebody restored an older backup of etcd, its
    /// object replaces the cached one, all caches list again, and the listener gets the change as
    /// one of a list: it has what the restore changed, too.
    pub fn record_write(&self, kind: &Kind, object: Object) {
        let object = self.store.compressed_for_all(kind, object);
        self.store.take_contradicting_write(kind, &object);
        self.store.update_all(kind, object.key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.record_write(object.clone())
        });
    }

    /// Records the deletion of the object with this uid. The caches drop late events and responses
    /// with the uid.
    pub fn record_deletion(&self, kind: &Kind, key: &ObjectKey, uid: &str) {
        self.store.update_all(kind, key.namespace(), Source::Write, ALL, |objects, now| {
            objects.record_deletion(key, uid, now)
        });
    }

    /// Marks the cached state of an object as wrong or doubtful: the response to a write was lost,
    /// or contradicts the cache. Lookups give [`CacheLookup::Unknown`](super::CacheLookup::Unknown)
    /// until an event, a relist or [`Caches::look_up_unknown`].
    pub fn mark_unknown(&self, kind: &Kind, key: &ObjectKey) {
        self.store.update_all(kind, key.namespace(), Source::Write, WHOLE, |objects, _| {
            objects.mark_unknown(key);
            None
        });
    }

    /// Marks an object as unknown if the cache still has it with this version: an answer says that
    /// the API server has another version or none. The event usually arrives about now.
    pub fn mark_unknown_if_at(&self, kind: &Kind, key: &ObjectKey, resource_version: &str) {
        self.store.update_all(kind, key.namespace(), Source::Write, WHOLE, |objects, _| {
            let cached = objects.live().get(key);
            if cached.is_some_and(|cached| &*cached.resource_version == resource_version) {
                objects.mark_unknown(key);
            }
            None
        });
    }

    /// Whether the cached state of an object is unknown.
    pub fn is_unknown(&self, kind: &Kind, key: &ObjectKey) -> bool {
        self.store.is_unknown(kind, key)
    }

    /// Gets an unknown object by `get`, which gives the object, or `None` for "not found", and
    /// records the answer. If it contradicts the caches, since somebody restored an older backup of
    /// etcd, its object replaces the cached one, and all caches list again.
    ///
    /// # Errors
    /// Those of `get`; the object stays unknown.
    pub async fn look_up_unknown<E>(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        get: impl Future<Output = Result<Option<Object>, E>>,
    ) -> Result<(), E> {
        let known = self.store.known_before_get(kind, key);
        let found = get.await?;
        self.resolve_unknown(kind, key, found, &known);
        Ok(())
    }

    /// Records the answer to a GET. `known` is what the caches knew before the request.
    pub(super) fn resolve_unknown(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        found: Option<Object>,
        known: &[KnownVersion],
    ) {
        let found = found.map(|object| self.store.compressed_for_all(kind, object));
        if let Some(object) = &found {
            self.store.take_contradicting_get(kind, object, known);
        }
        self.store.update_all(kind, key.namespace(), Source::Lookup, WHOLE, |objects, _| {
            objects.resolve_unknown(key, found.clone())
        });
    }

    /// Compares the kinds of an API group with discovery again, after a change in the group (a
    /// CustomResourceDefinition was established). Call
    /// [`Cluster::kinds_changed`](crate::Cluster::kinds_changed) first.
    pub fn kind_may_be_served(&self, group: &str) {
        self.store.verify_group(group);
    }

    /// The size of each cache, ordered by kind and namespace.
    pub fn sizes(&self) -> Vec<CacheSize> {
        self.store.sizes()
    }
}

fn whole(kinds: &[Kind]) -> Vec<ViewedKind> {
    kinds.iter().map(ViewedKind::whole).collect()
}
