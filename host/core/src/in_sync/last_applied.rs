//! Which apply the running host made last to an object.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::digest::{DIGEST_BYTES, decode_digest, digest};
use crate::{Manager, Object};

/// The last apply of one object, as the running host remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastApplied {
    /// The digest of the desired object.
    desired: [u8; DIGEST_BYTES],
    /// The digest of the manager's entry as the server returned it, of the object's uid, and of
    /// whether the object has the digest of the desired one.
    entry: [u8; DIGEST_BYTES],
}

impl LastApplied {
    /// Remembers an apply: `desired` as the host sent it (with or without its digest), `response`
    /// as the server returned it. Returns `None` if the response has no entry of the manager.
    pub fn new(desired: &Value, response: &Object, manager: &Manager) -> Option<Self> {
        Self::with_digest(&digest(desired), response, manager)
    }

    /// Remembers an apply of a desired object with this [`digest`], as [`LastApplied::new`] does.
    pub fn with_digest(digest: &str, response: &Object, manager: &Manager) -> Option<Self> {
        let fields = response.applied_by(manager)?;
        let desired = decode_digest(digest)?;
        let mut hash = Sha256::new();
        hash.update(response.uid.as_bytes());
        // A late apply of an earlier state, under the same name, leaves the entry as it is.
        hash.update([0, u8::from(response.text.read().contains(digest))]);
        hash.update(fields.as_bytes());
        let mut entry = [0; DIGEST_BYTES];
        entry.copy_from_slice(&hash.finalize()[..DIGEST_BYTES]);
        Some(Self { desired, entry })
    }

    /// Whether applying `desired` would change nothing: the last apply sent the same object, and
    /// the manager's entry on the live object is as that apply left it.
    pub fn is_in_sync(&self, desired: &Value, live: &Object, manager: &Manager) -> bool {
        self.is_in_sync_with(&digest(desired), live, manager)
    }

    /// As [`LastApplied::is_in_sync`], for a desired object with this [`digest`].
    pub fn is_in_sync_with(&self, digest: &str, live: &Object, manager: &Manager) -> bool {
        self.has_digest(digest) && Self::with_digest(digest, live, manager).as_ref() == Some(self)
    }

    /// Whether the last applied object had this digest.
    pub fn has_digest(&self, digest: &str) -> bool {
        decode_digest(digest) == Some(self.desired)
    }
}
