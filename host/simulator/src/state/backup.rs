//! A backup of etcd: [`Backup`].

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;

use crate::state::kubelet::Step;
use crate::state::work_queue::WorkQueue;
use crate::types::object_key::{Key, KindKey};

/// By how much a restore increases the revision if it is to: the example of etcd's documentation of
/// `etcdutl snapshot restore --bump-revision`.
pub(crate) const BUMP: u64 = 1_000_000_000;

/// The objects of a cluster as they were at one time.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The objects by kind and key, as they were stored.
    pub(crate) objects: BTreeMap<KindKey, BTreeMap<Key, Bytes>>,
    /// The version of the last write.
    pub(crate) version: u64,
    /// Objects that were stored in another version than their kind.
    pub(crate) raw: BTreeSet<(KindKey, Key)>,
    /// The owners and dependents of the objects, and the work that was due later.
    pub(crate) work_queue: WorkQueue,
    /// The next step of each Pod.
    pub(crate) steps: BTreeMap<String, (Step, Timestamp)>,
}
