//! A primary to reconcile, and how its reconcile ended.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_core::ObjectKey;

/// A primary of a module that is to be reconciled: the key of the queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReconcileRequest {
    /// The module's name.
    pub module: Arc<str>,
    /// The primary's namespace and name.
    pub key: ObjectKey,
}

/// How a reconcile ended: decides when the request runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// It succeeded. The request runs again after the time, if there is one.
    Ok(Option<Duration>),
    /// It failed. The request runs again after a backoff.
    Failed,
    /// It failed and only a change of an object that it read helps, so there is no backoff. The
    /// request runs again after the time, if there is one.
    AwaitChange(Option<Duration>),
    /// The write rate, or an update of a group that needs more rounds, interrupted it. The request
    /// runs again in a later turn, as soon as the write rate allows a write.
    Requeue,
    /// The primary is gone: the queue forgets the request.
    Forget,
}
