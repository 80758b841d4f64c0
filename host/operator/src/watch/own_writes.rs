//! Which request made a write: the change that follows does not wake it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use innkeeper_core::Object;

use crate::queue::ReconcileRequest;

/// The number of writes to remember. A write that is forgotten before its watch event arrives costs
/// its request a run that finds nothing to do.
const WRITES_MAX: usize = 2048;

/// The resourceVersion of a deleted object here; no API server gives this one.
const GONE: &str = "gone";

type Version = (Arc<str>, Arc<str>);

/// The last writes, by uid and resourceVersion of the object that each made.
#[derive(Debug, Default)]
pub struct OwnWrites {
    writers: BTreeMap<Version, ReconcileRequest>,
    order: VecDeque<Version>,
}

impl OwnWrites {
    /// Notes that a request wrote this version of an object. Call it before the caches get it.
    pub fn note(&mut self, object: &Object, writer: &ReconcileRequest) {
        self.insert(version(object), writer);
    }

    /// Notes that a request deleted the object with this uid. To be called before the caches get
    /// it.
    pub fn note_deleted(&mut self, uid: &str, writer: &ReconcileRequest) {
        self.insert((uid.into(), GONE.into()), writer);
    }

    /// The request that deleted the object with this uid, if the host did.
    pub fn deleter(&self, uid: &str) -> Option<&ReconcileRequest> {
        self.writers.get(&(uid.into(), GONE.into()))
    }

    fn insert(&mut self, version: Version, writer: &ReconcileRequest) {
        if self.writers.insert(version.clone(), writer.clone()).is_none() {
            self.order.push_back(version);
        }
        if self.order.len() > WRITES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.writers.remove(&oldest);
        }
    }

    /// The request that wrote this version of an object, if the host did.
    pub fn writer(&self, object: &Object) -> Option<&ReconcileRequest> {
        self.writers.get(&version(object))
    }

    /// Forgets the writes of the object with this uid: a list shows another state of it than the
    /// host knew, and a cluster whose versions went back gives them out once more.
    pub fn forget_object(&mut self, uid: &str) {
        let of_object = (uid.into(), "".into())..;
        let versions = self.writers.range::<Version, _>(of_object).map(|(version, _)| version);
        let own: Vec<Version> = versions.take_while(|(of, _)| **of == *uid).cloned().collect();
        if own.is_empty() {
            return;
        }
        for version in &own {
            self.writers.remove(version);
        }
        self.order.retain(|version| self.writers.contains_key(version));
    }

    /// Forgets the writes of a module.
    pub fn forget_module(&mut self, module: &str) {
        self.writers.retain(|_, writer| &*writer.module != module);
        self.order.retain(|version| self.writers.contains_key(version));
        self.order.shrink_to_fit();
    }
}

fn version(object: &Object) -> Version {
    ((*object.uid).into(), (*object.resource_version).into())
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use innkeeper_core::ObjectKey;

    use super::*;

    fn object(version: usize) -> Object {
        let text =
            format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}}}}"#);
        Object::decode(&Kind::namespaced("v1", "Pod", "pods"), &text, None).unwrap()
    }

    #[test]
    fn the_last_writes_are_known_and_the_oldest_forgotten() {
        let mut writes = OwnWrites::default();
        let request = ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", "a") };
        for version in 0..=WRITES_MAX {
            writes.note(&object(version), &request);
            writes.note(&object(version), &request);
        }
        assert_eq!(writes.writer(&object(0)), None);
        assert_eq!(writes.writer(&object(1)), Some(&request));
        assert_eq!(writes.writer(&object(WRITES_MAX)), Some(&request));
        assert_eq!(writes.order.len(), writes.writers.len());
        writes.note_deleted("u", &request);
        assert_eq!((writes.deleter("u"), writes.deleter("v")), (Some(&request), None));
    }

    #[test]
    fn forgotten_object_leaves_the_writes_of_others() {
        let mut writes = OwnWrites::default();
        let request = ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", "a") };
        let other = Object { uid: "v".into(), ..object(1) };
        writes.note(&object(1), &request);
        writes.note(&object(22), &request);
        writes.note_deleted("u", &request);
        writes.note(&other, &request);

        writes.forget_object("u");

        for version in [1, 22] {
            assert_eq!(writes.writer(&object(version)), None);
        }
        assert_eq!(writes.deleter("u"), None);
        assert_eq!(writes.writer(&other), Some(&request));
        assert_eq!(writes.order.len(), 1);
    }

    #[test]
    fn forgotten_module_leaves_the_writes_of_others() {
        let mut writes = OwnWrites::default();
        let [gone, other] = ["gone", "other"].map(|module| ReconcileRequest {
            module: module.into(),
            key: ObjectKey::new("n", "a"),
        });
        writes.note(&object(1), &gone);
        writes.note(&object(2), &other);
        writes.note_deleted("u", &gone);

        writes.forget_module("gone");

        assert_eq!(writes.writer(&object(1)), None);
        assert_eq!(writes.writer(&object(2)), Some(&other));
        assert_eq!(writes.deleter("u"), None);
        assert_eq!((writes.writers.len(), writes.order.len()), (1, 1));
    }
}
