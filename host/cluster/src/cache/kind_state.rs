//! Whether a view can read a kind: [`KindState`], [`StateChange`].

use std::sync::Arc;

use innkeeper_contract::Kind;

use crate::{Denial, Mismatch};

/// Whether a view can read a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindState {
    /// The cache has not listed the kind yet, or not with the fields that the view needs.
    Syncing,
    /// The view can read the kind.
    Synced,
    /// The API server does not serve the kind (now).
    NotServed,
    /// The API server serves the kind otherwise than it is declared: the host neither reads nor
    /// writes its objects.
    Mismatched(Mismatch),
    /// The view's identity may not read the kind.
    Forbidden(Denial),
    /// The cache could not list the kind, for this reason, and tries again. (A cache that has
    /// listed its kind, with the fields that the view needs, stays [`KindState::Synced`] when its
    /// watch fails: the view reads on while the cache resumes the watch.)
    Failing(String),
}

/// A change of the state of a kind in a view.
#[derive(Clone, Debug)]
pub struct StateChange {
    /// The module of the view.
    pub module: Arc<str>,
    /// The kind.
    pub kind: Arc<Kind>,
    /// The namespace that the cache is limited to; `None` for a cache of all namespaces.
    pub namespace: Option<Arc<str>>,
    /// The new state.
    pub state: KindState,
}
