//! What a cache knew of an object before a request: [`KnownVersion`].

use std::sync::Arc;

use innkeeper_core::Object;

/// What a cache knew of an object before a request for it was sent.
///
/// A watch shows the changes of a kind in the order of their versions. So each answer to a later
/// request shows the object as the cache knows it, or with a version above the last event. Another
/// answer means that the versions went back: somebody restored an older backup of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownVersion {
    uid: Box<str>,
    version: u64,
    /// The greatest version among the events of the kind, and what the last list showed.
    reached: u64,
}

impl KnownVersion {
    /// Of a cached object; `None` if a version is no number.
    pub(super) fn new(cached: &Arc<Object>, reached: u64) -> Option<Self> {
        let (uid, version) = (cached.uid.clone(), cached.version());
        (version > 0 && reached > 0).then_some(Self { uid, version, reached })
    }

    /// Whether the versions went back before the answer with this object.
    pub(super) fn is_contradicted_by(&self, answer: &Object) -> bool {
        let version = answer.version();
        answer.uid == self.uid
            && version > 0
            && version != self.version
            && version < self.reached.max(self.version)
    }
}
