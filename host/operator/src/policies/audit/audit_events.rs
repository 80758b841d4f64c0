//! The changes in the caches of policies that trigger reviews of the audit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{Change as CacheChange, Listener};
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use tokio::sync::Notify;

use super::audited_object::AuditedObject;
use crate::modules::event::HOST_MODULE;
use crate::watch::dependency_index::{Change, DependencyIndex};
use crate::watch::read_scope::UnreadByModule;

/// The most changed objects between two turns of the audit. More count as a change of everything.
const CHANGES_MAX: usize = 50_000;

/// The changes since the last turn of the audit.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Objects whose last review read something that changed.
    pub(super) woken: BTreeSet<AuditedObject>,
    /// Objects of kinds that a policy reviews.
    pub(super) objects: BTreeSet<(Arc<Kind>, ObjectKey)>,
    /// Modules, each with a kind whose readability has changed.
    pub(super) states: BTreeSet<(Arc<str>, Arc<Kind>)>,
    /// Whether labels of Namespaces, or too many objects, have changed.
    pub(super) is_everything: bool,
}

/// Listens to the caches of policies, and wakes the audit.
#[derive(Default)]
pub(super) struct AuditEvents {
    index: Mutex<DependencyIndex<AuditedObject>>,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    changes: Changes,
    /// The kinds whose objects some policy reviews.
    kinds: BTreeSet<Arc<Kind>>,
}

impl AuditEvents {
    /// The reads of the last review of each object.
    pub(super) fn index(&self) -> MutexGuard<'_, DependencyIndex<AuditedObject>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the kinds whose objects some policy reviews.
    pub(super) fn set_kinds(&self, kinds: BTreeSet<Arc<Kind>>) {
        self.state().kinds = kinds;
    }

    /// Takes what has changed.
    pub(super) fn take(&self) -> Changes {
        std::mem::take(&mut self.state().changes)
    }

    /// Waits until something has changed.
    pub(super) async fn notified(&self) {
        self.wake.notified().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for AuditEvents {
    fn changed(&self, change: &CacheChange) {
        let of_index = Arc::new(Change {
            kind: change.kind.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            writer: None,
        });
        let woken = self.index().changed(&of_index, &UnreadByModule::default());
        let labels = |object: &Option<Arc<innkeeper_core::Object>>| {
            object.as_ref().map(|object| object.labels.clone())
        };
        let mut state = self.state();
        let is_reviewed = state.kinds.contains(&change.kind);
        let selects = is_namespace(&change.kind) && labels(&change.before) != labels(&change.after);
        if woken.is_empty() && !is_reviewed && !selects {
            return;
        }
        let changes = &mut state.changes;
        changes.is_everything |= selects;
        changes.woken.extend(woken);
        if is_reviewed {
            changes.objects.insert((change.kind.clone(), change.key.clone()));
        }
        if changes.objects.len() > CHANGES_MAX {
            changes.objects.clear();
            changes.is_everything = true;
        }
        drop(state);
        self.wake.notify_one();
    }

    fn state_changed(&self, change: &StateChange) {
        let mut state = self.state();
        if *change.module != *HOST_MODULE {
            state.changes.states.insert((change.module.clone(), change.kind.clone()));
        } else if is_namespace(&change.kind) {
            state.changes.is_everything = true;
        } else {
            return;
        }
        drop(state);
        self.wake.notify_one();
    }
}

fn is_namespace(kind: &Kind) -> bool {
    kind.plural == "namespaces" && kind.group().is_empty()
}
