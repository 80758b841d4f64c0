//! How far the update of a group is.

use std::time::Duration;

use innkeeper_contract::UpdateMethod;

use crate::ObjectRef;

/// How far the update of a group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateProgress {
    /// The name of the group.
    pub group: String,
    /// How the host updates its objects.
    pub method: UpdateMethod,
    /// How many objects the group has.
    pub total: usize,
    /// How many of them are as the guest desires them now.
    pub updated: usize,
    /// How many of the updated ones are available.
    pub available: usize,
    /// What the update does next.
    pub state: UpdateState,
    /// After which time the state may change although no object does.
    pub look_again: Option<Duration>,
}

/// What the update of a group does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateState {
    /// Nothing: all objects are updated and available.
    Done,
    /// It updates objects in this round.
    Updating,
    /// It waits for this object to become available, which it is not for this reason.
    Waiting(ObjectRef, String),
    /// It is stopped: this object failed for this reason.
    Failed(ObjectRef, String),
    /// The guest paused it.
    Paused,
    /// So many objects change when somebody deletes them.
    OnDelete(usize),
}
