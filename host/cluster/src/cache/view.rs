//! What one module reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use innkeeper_contract::Kind;

use super::cell::{CacheId, Content};
use super::change::KindState;
use super::shared::Shared;
use super::snapshot::CacheSnapshot;
use crate::{ApiClient, Identity};

/// Where a module reads namespaced kinds. Cluster-scoped kinds are read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// In all namespaces: needs a `ClusterRole`.
    All,
    /// In these: a Role in each is enough.
    Only(BTreeSet<String>),
}

/// What one module reads: caches of its kinds, as its identity. Dropping it closes it.
pub struct View {
    shared: Arc<Shared>,
    number: u64,
    module: Arc<str>,
    identity: Identity,
    caches: BTreeMap<Arc<Kind>, Vec<CacheId>>,
}

impl View {
    pub(super) fn open(
        shared: &Arc<Shared>,
        client: &ApiClient,
        module: &str,
        kinds: &[Kind],
        namespaces: &Namespaces,
        content: Content,
    ) -> Self {
        let module: Arc<str> = module.into();
        let mut caches: BTreeMap<Arc<Kind>, Vec<CacheId>> = BTreeMap::new();
        for kind in kinds {
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
        let number = shared.join(client, &module, caches.values().flatten());
        Self { shared: shared.clone(), number, module, identity: client.identity().clone(), caches }
    }

    /// The module that opened it.
    pub fn module(&self) -> &Arc<str> {
        &self.module
    }

    /// As whom it reads.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it was opened for objects of this kind in this namespace (empty for
    /// cluster-scoped kinds).
    pub fn covers(&self, kind: &Kind, namespace: &str) -> bool {
        self.caches.get(kind).is_some_and(|ids| ids.iter().any(|id| id.covers(namespace)))
    }

    /// What is there now, over all kinds. Costs a few words per kind.
    pub fn snapshot(&self) -> CacheSnapshot {
        self.shared.snapshot(self.number, &self.identity, &self.caches)
    }

    /// What can be done with each kind now; of several namespaces, the worst.
    pub fn states(&self) -> BTreeMap<Arc<Kind>, KindState> {
        self.snapshot().states()
    }

    /// Waits until no kind is [`KindState::Syncing`] any more.
    pub async fn settled(&self) {
        loop {
            let changed = self.shared.state_changed();
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
        self.shared.leave(self.number, &self.identity, self.caches.values().flatten());
    }
}
