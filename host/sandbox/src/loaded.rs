//! The components that the guests of an engine hold at present.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use innkeeper_contract::Manifest;

use crate::limits::Limits;
use crate::program::Program;

/// A component that is a guest of the contract, or a Kubewarden policy. The guests of one component
/// share it.
pub(crate) struct Loaded {
    pub(crate) program: Program,
    pub(crate) described: Arc<Manifest>,
    pub(crate) warnings: Vec<String>,
    pub(crate) digest: String,
    pub(crate) size_bytes: usize,
    /// The limits under which `describe` ran.
    pub(crate) limits: Limits,
}

/// The components that guests hold at present, by SHA-256: another load of the same bytes compiles
/// nothing.
#[derive(Default)]
pub(crate) struct LoadedComponents(Mutex<BTreeMap<[u8; 32], Weak<Loaded>>>);

impl LoadedComponents {
    /// The component with this digest, if a guest holds it.
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<Arc<Loaded>> {
        // A panic elsewhere cannot leave this map half written.
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(digest).and_then(Weak::upgrade)
    }

    /// Keeps a component for as long as a guest holds it.
    pub(crate) fn insert(&self, digest: [u8; 32], loaded: &Arc<Loaded>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.strong_count() > 0);
        all.insert(digest, Arc::downgrade(loaded));
    }
}
