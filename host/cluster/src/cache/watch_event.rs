//! A decoded event of a watch: [`WatchEvent`].

use std::sync::Arc;

use innkeeper_core::{Object, ObjectKey};
use tokio::time::Instant;

use super::objects::{Objects, Transition};

/// A decoded event of a watch.
pub(super) enum WatchEvent {
    /// The object was added or modified.
    Applied(Arc<Object>),
    /// The object was deleted.
    Deleted(Arc<Object>),
}

impl WatchEvent {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Applied(object) | Self::Deleted(object) => &object.key,
        }
    }

    /// Changes the objects of a cache; gives the change, if the event is news.
    pub(super) fn apply_to(self, objects: &mut Objects, now: Instant) -> Option<Transition> {
        match self {
            Self::Applied(object) => objects.apply_event(object),
            Self::Deleted(object) => objects.apply_deleted_event(&object, now),
        }
    }
}
