//! What a cache knew of an object before a request: [`KnownVersion`].

use std::sync::Arc;

use innkeeper_core::Object;

/// What a cache knew of an object before the host sent a request for it.
///
/// A watch sends the changes of a kind in the order of their versions. So an answer to a later
/// request has the object as the cache knows it, or a version that the watch has not reached.
/// Another answer contradicts the cache: somebody restored an older backup of etcd, or the versions
/// of this API server have no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownVersion {
    /// Uid and version of the object; `None` if there was none.
    object: Option<(Box<str>, u64)>,
    /// The cache has all changes of the kind up to this version.
    seen_up_to: u64,
    /// A list was running that had not shown the object yet.
    during_list: bool,
}

impl KnownVersion {
    /// Of a cache that has all changes up to a version. `None` if a version is no number.
    pub(super) fn new(cached: Option<&Arc<Object>>, seen_up_to: u64) -> Option<Self> {
        let object = cached.map(|cached| (cached.uid.clone(), cached.version()));
        let is_number = object.as_ref().is_none_or(|(_, version)| *version > 0);
        (is_number && seen_up_to > 0).then_some(Self { object, seen_up_to, during_list: false })
    }

    /// The same while a list runs that has not shown the object yet; when the list began, the cache
    /// had all changes up to the version `seen_up_to`.
    pub(super) fn during_list(cached: Option<&Arc<Object>>, seen_up_to: u64) -> Option<Self> {
        Some(Self { during_list: true, ..Self::new(cached, seen_up_to)? })
    }

    /// Whether a list was running, so that none has to follow.
    pub(super) fn is_during_list(&self) -> bool {
        self.during_list
    }

    /// Whether the cached object is still the one that was known before the request.
    pub(super) fn is_of(&self, cached: Option<&Arc<Object>>) -> bool {
        match (&self.object, cached) {
            (Some((uid, version)), Some(cached)) => {
                *uid == cached.uid && *version == cached.version()
            }
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether an answer with this object contradicts it.
    pub(super) fn is_contradicted_by(&self, answer: &Object) -> bool {
        let version = answer.version();
        match &self.object {
            _ if version == 0 => false,
            Some((uid, known)) => {
                let is_known = *uid == answer.uid && version == *known;
                !is_known && version <= self.seen_up_to.max(*known)
            }
            None => version <= self.seen_up_to,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(uid: &str, version: &str) -> Arc<Object> {
        let json = serde_json::json!({"metadata": {"namespace": "n", "name": "x", "uid": uid,
            "resourceVersion": version}});
        let kind = innkeeper_contract::Kind::namespaced("v1", "ConfigMap", "configmaps");
        Arc::new(Object::decode(&kind, &json.to_string(), None).unwrap())
    }

    #[test]
    fn answer_that_is_neither_the_known_object_nor_later_contradicts() {
        let known = KnownVersion::new(Some(&object("u", "5")), 20).unwrap();
        let contradicts = |uid, version| known.is_contradicted_by(&object(uid, version));
        assert!(!contradicts("u", "5"), "the known object");
        assert!(!contradicts("u", "21") && !contradicts("v", "21"), "later ones");
        assert!(contradicts("u", "4") && contradicts("u", "20") && contradicts("v", "5"));
        assert!(!contradicts("u", "a"), "no number");
        // A response to a write can be ahead of the watch.
        let written = KnownVersion::new(Some(&object("u", "30")), 20).unwrap();
        assert!(written.is_contradicted_by(&object("u", "25")));
        assert!(!written.is_contradicted_by(&object("u", "31")));
        assert!(written.is_contradicted_by(&object("v", "25")));
        assert!(!written.is_contradicted_by(&object("v", "31")));
    }

    #[test]
    fn answer_for_an_object_that_was_not_there_is_later() {
        let known = KnownVersion::new(None, 20).unwrap();
        assert!(known.is_contradicted_by(&object("u", "20")));
        assert!(!known.is_contradicted_by(&object("u", "21")));
    }

    #[test]
    fn cached_object_is_the_known_one_with_the_same_uid_and_version() {
        let known = KnownVersion::new(Some(&object("u", "5")), 20).unwrap();
        assert!(known.is_of(Some(&object("u", "5"))));
        assert!(!known.is_of(Some(&object("u", "6"))) && !known.is_of(Some(&object("v", "5"))));
        assert!(!known.is_of(None));
        let absent = KnownVersion::new(None, 20).unwrap();
        assert!(absent.is_of(None) && !absent.is_of(Some(&object("u", "5"))));
    }

    #[test]
    fn nothing_is_known_without_numbers_or_a_list() {
        assert_eq!(KnownVersion::new(Some(&object("u", "a")), 20), None);
        assert_eq!(KnownVersion::new(None, 0), None);
    }
}
