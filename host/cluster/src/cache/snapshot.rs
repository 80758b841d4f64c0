//! The content of a view at one moment: [`CacheSnapshot`].

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Labels, Object, ObjectKey};

use super::kind_state::KindState;
use super::live_objects::LiveObjects;
use crate::{Denial, Mismatch};

/// The content of a view at one moment. It never changes, and is cheap to keep.
#[derive(Clone, Debug)]
pub struct CacheSnapshot {
    /// By kind, in order.
    kinds: Vec<(Arc<Kind>, Vec<SnapshotPart>)>,
}

/// A kind in one scope of a view.
#[derive(Clone, Debug)]
pub(super) struct SnapshotPart {
    pub(super) namespace: Option<Arc<str>>,
    pub(super) state: KindState,
    /// `None` unless the state is [`KindState::Synced`].
    pub(super) live: Option<LiveObjects>,
}

impl SnapshotPart {
    fn covers(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    fn read(&self) -> Result<&LiveObjects, CacheReadError> {
        match (&self.live, &self.state) {
            (Some(live), _) => Ok(live),
            (None, KindState::NotServed) => Err(CacheReadError::NotServed),
            (None, KindState::Mismatched(mismatch)) => {
                Err(CacheReadError::Mismatched(mismatch.clone()))
            }
            (None, KindState::Forbidden(denial)) => Err(CacheReadError::Forbidden(denial.clone())),
            (None, KindState::Failing(message)) => Err(CacheReadError::NotSynced(message.clone())),
            (None, KindState::Syncing | KindState::Synced) => {
                Err(CacheReadError::NotSynced("not read yet".to_owned()))
            }
        }
    }
}

/// The reason why a view cannot read a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheReadError {
    /// The view was not opened for this kind, or not for this namespace.
    #[error("not declared")]
    Undeclared,
    /// The API server does not serve the kind (now).
    #[error("not served")]
    NotServed,
    /// The API server serves it otherwise than it is declared.
    #[error("{0}")]
    Mismatched(Mismatch),
    /// The view's identity may not read it.
    #[error("{0}")]
    Forbidden(Denial),
    /// The cache has not listed it yet, for this reason.
    #[error("{0}")]
    NotSynced(String),
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheLookup {
    /// The object.
    Found(Arc<Object>),
    /// There is no object of that name.
    Absent,
    /// The cached state is wrong or doubtful: only a GET gives the object.
    Unknown,
    /// The view cannot read the kind.
    Unreadable(CacheReadError),
}

impl CacheSnapshot {
    /// Of kinds in order, each once.
    pub(super) fn new(kinds: Vec<(Arc<Kind>, Vec<SnapshotPart>)>) -> Self {
        debug_assert!(kinds.is_sorted_by(|(a, _), (b, _)| a < b), "kinds in another order");
        Self { kinds }
    }

    /// Looks up an object.
    pub fn get(&self, kind: &Kind, key: &ObjectKey) -> CacheLookup {
        let part = match self.part(kind, key.namespace()) {
            Ok(part) => part,
            Err(error) => return CacheLookup::Unreadable(error),
        };
        match part.read() {
            Err(error) => CacheLookup::Unreadable(error),
            Ok(live) if live.is_unknown(key) => CacheLookup::Unknown,
            Ok(live) => live
                .get(key)
                .map_or(CacheLookup::Absent, |object| CacheLookup::Found(object.clone())),
        }
    }

    /// The objects of a kind in a namespace, or (`None`) in all namespaces of the view, whose
    /// labels match a selector; ordered by namespace and name.
    ///
    /// # Errors
    /// [`CacheReadError`] if the view cannot read the kind there.
    pub fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &dyn Fn(&Labels) -> bool,
    ) -> Result<Vec<Arc<Object>>, CacheReadError> {
        let mut found = Vec::new();
        match namespace.filter(|_| kind.is_namespaced()) {
            Some(namespace) => {
                let live = self.part(kind, namespace)?.read()?;
                found.extend(live.in_namespace(namespace).filter(|o| selector(&o.labels)).cloned());
            }
            None => {
                // Parts are ordered by namespace, so their objects are.
                for part in self.parts(kind).ok_or(CacheReadError::Undeclared)? {
                    found.extend(part.read()?.all().filter(|o| selector(&o.labels)).cloned());
                }
            }
        }
        Ok(found)
    }

    /// The objects of all readable kinds that name an owner with this uid, or that a primary with
    /// this uid wrote to; ordered by kind, namespace and name.
    pub fn owned_by(&self, uid: &str) -> Vec<(Arc<Kind>, Arc<Object>)> {
        let mut found = Vec::new();
        for (kind, parts) in &self.kinds {
            for live in parts.iter().filter_map(|part| part.live.as_ref()) {
                found.extend(live.owned_by(uid).map(|object| (kind.clone(), object.clone())));
            }
        }
        found
    }

    /// The unknown objects, in order: [`CacheSnapshot::get`] gives [`CacheLookup::Unknown`] for
    /// them, and lists may be wrong about them.
    pub fn unknown(&self) -> Vec<(Arc<Kind>, ObjectKey)> {
        let mut found = Vec::new();
        for (kind, parts) in &self.kinds {
            for live in parts.iter().filter_map(|part| part.live.as_ref()) {
                found.extend(live.unknown().map(|key| (kind.clone(), key.clone())));
            }
        }
        found
    }

    /// The state of each kind; of several namespaces, the worst one.
    pub fn states(&self) -> BTreeMap<Arc<Kind>, KindState> {
        let worst = |parts| worst(parts).cloned().unwrap_or(KindState::Synced);
        self.kinds.iter().map(|(kind, parts)| (kind.clone(), worst(parts))).collect()
    }

    /// Whether each kind has been read, or cannot be read as things are: it is not served, served
    /// otherwise than declared, or forbidden. Of several namespaces, the worst state counts.
    pub fn is_complete(&self) -> bool {
        let mut states = self.kinds.iter().filter_map(|(_, parts)| worst(parts));
        states.all(|state| !matches!(state, KindState::Syncing | KindState::Failing(_)))
    }

    /// The reason why the view cannot read a kind; `None` if it can.
    pub fn unreadable(&self, kind: &Kind) -> Option<CacheReadError> {
        match self.parts(kind) {
            None => Some(CacheReadError::Undeclared),
            Some(parts) => parts.iter().find_map(|part| part.read().err()),
        }
    }

    fn parts(&self, kind: &Kind) -> Option<&[SnapshotPart]> {
        let index = self.kinds.binary_search_by(|(own, _)| (**own).cmp(kind)).ok()?;
        self.kinds.get(index).map(|(_, parts)| &**parts)
    }

    fn part(&self, kind: &Kind, namespace: &str) -> Result<&SnapshotPart, CacheReadError> {
        self.parts(kind)
            .and_then(|parts| parts.iter().find(|part| part.covers(namespace)))
            .ok_or(CacheReadError::Undeclared)
    }
}

/// The worst state of a kind in the namespaces of a view; `None` if it has none.
fn worst(parts: &[SnapshotPart]) -> Option<&KindState> {
    let rank = |state: &KindState| match state {
        KindState::Synced => 0,
        KindState::Syncing => 1,
        KindState::Failing(_) => 2,
        KindState::Forbidden(_) => 3,
        KindState::NotServed => 4,
        KindState::Mismatched(_) => 5,
    };
    parts.iter().map(|part| &part.state).max_by_key(|state| rank(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(states: &[KindState]) -> CacheSnapshot {
        let part = |(index, state): (usize, &KindState)| SnapshotPart {
            namespace: Some(format!("n{index}").into()),
            state: state.clone(),
            live: None,
        };
        let kind = Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps"));
        CacheSnapshot::new(vec![(kind, states.iter().enumerate().map(part).collect())])
    }

    #[test]
    fn snapshot_is_complete_if_no_kind_is_being_read_or_failing_at_worst() {
        use KindState::{Failing, NotServed, Synced, Syncing};
        assert!(snapshot(&[]).is_complete());
        assert!(snapshot(&[Synced, NotServed]).is_complete());
        for state in [Syncing, Failing("timeout".to_owned())] {
            assert!(!snapshot(&[Synced, state.clone()]).is_complete(), "{state:?}");
            assert!(!snapshot(&[state.clone(), Synced]).is_complete(), "{state:?}");
            assert!(snapshot(&[state.clone(), NotServed]).is_complete(), "{state:?}");
        }
    }
}
