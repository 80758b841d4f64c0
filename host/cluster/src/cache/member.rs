//! An identity that views a cache: [`Member`].

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The member's views by number, each with its module and the state reported last.
    pub(super) views: BTreeMap<u64, (Arc<str>, KindState)>,
    /// Starts the member's review again.
    pub(super) notify: Arc<Notify>,
    pub(super) _review: Task<()>,
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
