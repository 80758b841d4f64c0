//! What reads objects of the cluster.

use std::sync::Arc;

use crate::queue::ReconcileRequest;

/// What reads: a reconcile request, or the review of an existing object.
pub trait Reader: Clone + Ord {
    /// The module whose guest reads.
    fn module(&self) -> &Arc<str>;
}

impl Reader for ReconcileRequest {
    fn module(&self) -> &Arc<str> {
        &self.module
    }
}
