//! What serves now: a guest and its settings for each module, swapped in one step.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use innkeeper_contract::{Kind, Manifest};
use innkeeper_sandbox::{Guest, Limits};

use crate::ValidatedSpec;

/// A loaded component, as far as its life is concerned: [`Guest`], and a fake in tests.
pub trait Loaded: Clone {
    /// What it says it is.
    fn manifest(&self) -> &Manifest;
    /// The same with other limits on its calls; nothing is compiled.
    #[must_use]
    fn with_limits(&self, limits: Limits) -> Self;
}

impl Loaded for Guest {
    fn manifest(&self) -> &Manifest {
        self.manifest()
    }

    fn with_limits(&self, limits: Limits) -> Self {
        self.with_limits(limits)
    }
}

/// One version of a module that serves or served: it never changes. A call in flight holds
/// it until it ends, whatever is swapped meanwhile.
#[derive(Clone, Debug)]
pub struct Revision<G = Guest> {
    /// The Module's name.
    pub module: Arc<str>,
    /// The guest, with the limits of the settings.
    pub guest: G,
    /// The kinds that versions before it declared and this one does not: what they made of these
    /// is pruned.
    pub dropped: Vec<Kind>,
    /// How it is run.
    pub settings: ValidatedSpec,
    /// Counts what has served for this module, from 1: a later one is larger.
    pub version: u64,
}

/// What serves, by module. Shared between who drives the modules and who reconciles.
#[derive(Debug)]
pub struct Modules<G = Guest> {
    revisions: RwLock<BTreeMap<Arc<str>, Arc<Revision<G>>>>,
}

impl<G> Default for Modules<G> {
    fn default() -> Self {
        Self { revisions: RwLock::default() }
    }
}

impl<G> Modules<G> {
    /// What serves for a module; `None` if nothing does.
    pub fn get(&self, module: &str) -> Option<Arc<Revision<G>>> {
        self.revisions.read().unwrap_or_else(PoisonError::into_inner).get(module).cloned()
    }

    /// All that serves, ordered by the module's name.
    pub fn all(&self) -> Vec<Arc<Revision<G>>> {
        self.revisions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn put(&self, revision: Arc<Revision<G>>) {
        let mut map = self.revisions.write().unwrap_or_else(PoisonError::into_inner);
        map.insert(Arc::clone(&revision.module), revision);
    }

    pub(crate) fn remove(&self, module: &str) {
        self.revisions.write().unwrap_or_else(PoisonError::into_inner).remove(module);
    }
}
