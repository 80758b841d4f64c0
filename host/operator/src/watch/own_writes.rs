//! Whose write a change is: a key that wrote something knows it already.

use std::collections::{BTreeMap, VecDeque};

use innkeeper_core::Object;

use crate::queue::ReconcileRequest;

/// So many writes are remembered. Older ones have been told of long ago; one that is
/// forgotten too early costs its writer a run that finds nothing to do.
const WRITES_MAX: usize = 4096;

/// Stands for the version of an object that is gone; no server gives such a version.
const GONE: &str = "gone";

type Version = (Box<str>, Box<str>);

/// The last writes, by the uid and version that each made.
#[derive(Debug, Default)]
pub struct Writes {
    writers: BTreeMap<Version, ReconcileRequest>,
    order: VecDeque<Version>,
}

impl Writes {
    /// Notes that a key made this version of an object; before the caches are told.
    pub fn note(&mut self, object: &Object, writer: &ReconcileRequest) {
        self.insert(version(object), writer);
    }

    /// Notes that a key deleted the object with this uid; before the caches are told.
    pub fn note_deleted(&mut self, uid: &str, writer: &ReconcileRequest) {
        self.insert((uid.into(), GONE.into()), writer);
    }

    /// Who deleted the object with this uid, if it was one of ours.
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

    /// Who made this version of an object, if it was one of ours.
    pub fn writer(&self, object: &Object) -> Option<&ReconcileRequest> {
        self.writers.get(&version(object))
    }
}

fn version(object: &Object) -> Version {
    (object.uid.clone(), object.resource_version.clone())
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
        let mut writes = Writes::default();
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
}
