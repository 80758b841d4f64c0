//! The receiver of changes: [`Listener`].

use super::change::Change;
use super::kind_state::StateChange;

/// Receives the changes of all caches.
///
/// The caches call it in the order of the changes and never twice at once, on the thread that
/// caused a change or on one that is calling it already. No lock is held, so a listener may take
/// snapshots and record writes. It must be short: it delays a watch.
pub trait Listener: Send + Sync {
    /// Receives the change of an object. The caches report no object of the first list of a kind:
    /// [`Listener::state_changed`] with [`KindState::Synced`](super::KindState::Synced) means that
    /// all objects of the kind are new.
    fn changed(&self, change: &Change);

    /// Receives the new state of a kind in a view. The caches do not report the state at opening:
    /// [`View::states`](super::View::states) gives it.
    fn state_changed(&self, change: &StateChange);
}
