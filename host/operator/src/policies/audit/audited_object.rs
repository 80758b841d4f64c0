//! The identity of an existing object that a policy reviews.

use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;

use crate::watch::reader::Reader;

/// An existing object that a policy reviews. It is the reader in the index of reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AuditedObject {
    /// The Module of the policy.
    pub(super) module: Arc<str>,
    /// The kind of the object.
    pub(super) kind: Arc<Kind>,
    /// Its namespace and name.
    pub(super) key: ObjectKey,
}

impl Reader for AuditedObject {
    fn module(&self) -> &Arc<str> {
        &self.module
    }
}
