//! Input of `of`: whose revisions, and what is stored.

use std::sync::Arc;

use innkeeper_contract::{Kind, RevisionHistory};

use crate::ownership::PrimaryOwner;
use crate::{Object, ObjectRef};

/// Computes the digest of a text under a key of the host: hexadecimal digits, at least 16. Nobody
/// without the key can compute it.
pub type KeyedDigest<'a> = dyn Fn(&str) -> String + 'a;

/// Whose revisions, and what is stored.
pub struct RevisionInput<'a> {
    /// The primary.
    pub primary: &'a Object,
    /// The primary as the owner of objects.
    pub owner: &'a PrimaryOwner,
    /// What the guest lets the host store.
    pub history: &'a RevisionHistory,
    /// The kind `ControllerRevision` as the manifest declares it, see
    /// [`revision_kind`](super::revision_kind).
    pub kind: &'a Arc<Kind>,
    /// The objects that the primary owns or is merged into.
    pub owned: &'a [(ObjectRef, Arc<Object>)],
    /// The keyed digest.
    pub digest: &'a KeyedDigest<'a>,
}

impl RevisionInput<'_> {
    /// The API version of the primary in which the guest sees it.
    pub(super) fn api_version(&self) -> &str {
        &self.owner.object_ref.kind.api_version
    }
}
