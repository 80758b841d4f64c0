//! The caches that one module reads: [`View`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::FieldMask;

use super::cache_id::{CacheId, Content};
use super::kept_fields;
use super::kind_state::KindState;
use super::snapshot::CacheSnapshot;
use super::store::CacheStore;
use crate::{ApiClient, Identity};

/// The namespaces in which a module reads namespaced kinds. It reads all objects of a
/// cluster-scoped kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All namespaces: the module needs a `ClusterRole`.
    All,
    /// These namespaces: a Role in each of them is enough.
    Only(BTreeSet<String>),
}

/// A kind that a module reads, and the fields that it needs of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewedKind {
    /// The kind.
    pub kind: Kind,
    /// The fields; whole objects if these take more than 64 KiB. The cache leaves out what no view
    /// needs, but for objects that the host has written, and for the heads of all: these have every
    /// field.
    pub fields: Arc<FieldMask>,
}

impl ViewedKind {
    /// A kind with every field.
    pub fn whole(kind: &Kind) -> Self {
        Self { kind: kind.clone(), fields: Arc::default() }
    }
}

/// The caches that one module reads with its identity. Dropping the view closes it.
pub struct View {
    store: Arc<CacheStore>,
    number: u64,
    module: Arc<str>,
    identity: Identity,
    caches: BTreeMap<Arc<Kind>, Vec<CacheId>>,
}

impl View {
    pub(super) fn open(
        store: &Arc<CacheStore>,
        client: &ApiClient,
        module: &str,
        kinds: &[ViewedKind],
        namespaces: &Namespaces,
        content: Content,
    ) -> Self {
        let module: Arc<str> = module.into();
        let mut caches: BTreeMap<Arc<Kind>, Vec<CacheId>> = BTreeMap::new();
        for ViewedKind { kind, .. } in kinds {
            let kind = Arc::new(kind.clone());
            let id = |namespace: Option<&String>| CacheId {
                kind: kind.clone(),
                namespace: namespace.map(|name| name.as_str().into()),
                content,
            };
            let ids = match namespaces {
                Namespaces::Only(names) if kind.is_namespaced() => {
                    names.iter().map(|name| id(Some(name))).collect()
                }
                _ => vec![id(None)],
            };
            caches.insert(kind, ids);
        }
        let with_fields = kinds.iter().flat_map(|kind| {
            let fields = kept_fields::bounded(kind.fields.clone());
            caches.get(&kind.kind).into_iter().flatten().map(move |id| (id, fields.clone()))
        });
        let number = store.join(client, &module, with_fields);
        Self { store: store.clone(), number, module, identity: client.identity().clone(), caches }
    }

    /// The module that opened the view.
    pub fn module(&self) -> &Arc<str> {
        &self.module
    }

    /// The identity that reads.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the view has objects of this kind in this namespace (empty for cluster-scoped
    /// kinds).
    pub fn covers(&self, kind: &Kind, namespace: &str) -> bool {
        self.caches.get(kind).is_some_and(|ids| ids.iter().any(|id| id.covers(namespace)))
    }

    /// Takes a snapshot of all kinds. It costs a few machine words per kind.
    pub fn snapshot(&self) -> CacheSnapshot {
        self.store.snapshot(self.number, &self.identity, &self.caches)
    }

    /// The state of each kind; of several namespaces, the worst one.
    pub fn states(&self) -> BTreeMap<Arc<Kind>, KindState> {
        self.snapshot().states()
    }

    /// Waits until no kind is [`KindState::Syncing`] any more.
    pub async fn settled(&self) {
        loop {
            let changed = self.store.state_changed();
            if !self.states().values().any(|state| *state == KindState::Syncing) {
                return;
            }
            changed.await;
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("module", &self.module)
            .field("identity", &self.identity)
            .field("kinds", &self.caches.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.store.leave(self.number, &self.identity, self.caches.values().flatten());
    }
}
