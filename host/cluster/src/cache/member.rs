//! An identity that views a cache: [`Member`].

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_core::FieldMask;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::kind_state::KindState;
use crate::{ApiClient, Denial, Task};

/// An identity that views a cache.
pub(super) struct Member {
    pub(super) client: ApiClient,
    pub(super) admission: Admission,
    /// When the server last showed, by a review or a complete list, that the identity may read.
    pub(super) proven: Instant,
    /// The member's views by number.
    pub(super) views: BTreeMap<u64, MemberView>,
    /// Starts the member's review again.
    pub(super) notify: Arc<Notify>,
    pub(super) _review: Task<()>,
}

/// A view of a cache.
pub(super) struct MemberView {
    pub(super) module: Arc<str>,
    /// The fields that it needs.
    pub(super) fields: Arc<FieldMask>,
    /// Every cached object has these fields.
    pub(super) has_fields: bool,
    /// The running list shows these fields of every object.
    pub(super) is_listed_for: bool,
    /// The state reported last.
    pub(super) reported: KindState,
}

impl MemberView {
    /// The state of the kind for the view, by that for its member. `failure` says why the last list
    /// of fields failed.
    pub(super) fn state(&self, of_member: KindState, failure: Option<&str>) -> KindState {
        match (of_member, failure) {
            (KindState::Synced, Some(message)) if !self.has_fields => {
                KindState::Failing(message.to_owned())
            }
            (KindState::Synced, None) if !self.has_fields => KindState::Syncing,
            (state, _) => state,
        }
    }
}

/// Whether an identity may read a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// No review was answered yet.
    Pending,
    Admitted,
    /// The identity was admitted, but the server has answered no review for too long; with the
    /// message.
    Unproven(String),
    Denied(Denial),
}

/// The state of a member, which decides when its review asks the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    /// The member's client fills the cache. Its list shows first whether it may read.
    Holder,
    Pending,
    Admitted,
    Denied,
}
