//! What every step of a reconcile needs.

use std::sync::Arc;

use innkeeper_cluster::{Caches, InFlightWrite};
use innkeeper_core::{Object, ObjectRef};

use crate::modules::open_revision::OpenRevision;
use crate::queue::ReconcileRequest;
use crate::reconcile::primary_state::PrimaryState;
use crate::shared::Shared;

/// What every step of one round needs, and the bookkeeping of its writes.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What all reconciles of the operator share.
    pub shared: &'a Shared,
    /// The caches, which learn of each write from its answer.
    pub caches: &'a Caches,
    /// The module and the primary.
    pub request: &'a ReconcileRequest,
    /// The revision that was active when the round began.
    pub revision: &'a Arc<OpenRevision>,
    /// Whether the primary runs since its time has come, and nothing changed.
    pub is_scheduled: bool,
}

impl Context<'_> {
    /// Announces a write: its watch event may arrive before its answer, and is then held back until
    /// the answer says that the write was ours. Call it before the request is sent.
    pub fn begin_write(&self, object_ref: &ObjectRef) -> InFlightWrite {
        self.caches.begin_write(&object_ref.kind, &object_ref.key)
    }

    /// Records the object with which the API server answered a write: the caches have it at once,
    /// and the change does not wake this request.
    pub fn record_write(&self, object_ref: &ObjectRef, object: Object) {
        self.shared.writes().note(&object, self.request);
        self.caches.record_write(&object_ref.kind, object);
    }

    /// Records that the object with this uid is gone after a delete.
    pub fn record_deletion(&self, object_ref: &ObjectRef, uid: &str) {
        self.shared.writes().note_deleted(uid, self.request);
        self.caches.record_deletion(&object_ref.kind, &object_ref.key, uid);
    }

    /// Counts a write towards the metrics and the write rate.
    pub fn count_write(&self, verb: &str) {
        self.shared.count_write(self.request, verb);
    }

    /// Has the next round read an object live, since nobody knows its present state.
    pub fn mark_unknown(&self, object_ref: &ObjectRef, state: &mut PrimaryState) {
        self.caches.mark_unknown(&object_ref.kind, &object_ref.key);
        state.needs_read.insert(object_ref.clone());
    }
}
