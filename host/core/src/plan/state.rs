//! The state that a plan starts from: lookups in the caches, and the earlier rounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use litemap::LiteMap;

use crate::field_fights::RevertHistory;
use crate::in_sync::LastApplied;
use crate::{Object, ObjectRef};

/// The result of a lookup of one object in the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The object exists.
    Found(Arc<Object>),
    /// The object does not exist.
    Absent,
    /// The cache may be wrong: the response to a write never arrived, or the server contradicted
    /// the cache. A live read must decide.
    Unknown,
    /// The server does not serve the kind of the object.
    NotServed,
    /// The host cannot read objects of the kind, for this reason.
    Unreadable(String),
}

/// What the host remembers of the earlier rounds of one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannerState {
    /// The last apply of each object, as the response showed it.
    pub applied: LiteMap<ObjectRef, LastApplied>,
    /// Bodies that the server rejected, until the desired object changes.
    pub rejected: BTreeMap<ObjectRef, RejectedApply>,
    /// Which fields the host set back, and when.
    pub reverts: RevertHistory,
    /// The previous round was complete and all its applies succeeded.
    pub clean: bool,
}

impl PlannerState {
    /// Makes room for the applies of this many objects, and no more, if there are none yet.
    pub fn make_room(&mut self, objects: usize) {
        if self.applied.is_empty() {
            self.applied = LiteMap::with_capacity(objects);
        }
    }
}

/// A body that the server rejected, so that a retry would not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedApply {
    /// The digest of the rejected body.
    pub digest: String,
    /// The reason for conditions: one CamelCase word.
    pub reason: String,
    /// The message of the server.
    pub message: String,
    /// The body changes an immutable field, so a recreate would help.
    pub immutable: bool,
}
