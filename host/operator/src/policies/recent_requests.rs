//! The last requests that a replica reviewed, by module: in memory only, never on disk or in a log.
//!
//! The preview of a policy reviews them again. A busy policy takes the room of others only beyond
//! what all together may take, and then the largest loses its oldest request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::kept_request::KeptRequest;

/// The most bytes of one module.
pub const MODULE_BYTES_MAX: usize = 1 << 20;

/// The most bytes of all modules together.
pub const BYTES_MAX: usize = 8 << 20;

/// The most requests of one module.
pub const REQUESTS_MAX: usize = 512;

/// The last requests, by module.
#[derive(Debug, Default)]
pub struct RecentRequests(Mutex<Rings>);

#[derive(Debug, Default)]
struct Rings {
    by_module: BTreeMap<Arc<str>, Ring>,
    bytes: usize,
}

/// The requests of one module, the oldest first.
#[derive(Debug, Default)]
struct Ring {
    requests: VecDeque<Arc<KeptRequest>>,
    bytes: usize,
}

impl RecentRequests {
    /// Keeps a request of a module; the oldest ones make room for it.
    pub fn keep(&self, module: &Arc<str>, request: KeptRequest) {
        let bytes = request.bytes();
        let mut rings = self.lock();
        let ring = rings.by_module.entry(module.clone()).or_default();
        let before = ring.bytes;
        while ring.requests.len() >= REQUESTS_MAX || ring.bytes + bytes > MODULE_BYTES_MAX {
            if !ring.drop_oldest() {
                break;
            }
        }
        ring.requests.push_back(Arc::new(request));
        ring.bytes += bytes;
        let after = ring.bytes;
        rings.bytes = rings.bytes + after - before;
        while rings.bytes > BYTES_MAX && rings.drop_of_largest() {}
    }

    /// The requests of a module, the newest first.
    pub fn of(&self, module: &str) -> Vec<Arc<KeptRequest>> {
        let rings = self.lock();
        let ring = rings.by_module.get(module);
        ring.into_iter().flat_map(|ring| ring.requests.iter().rev()).cloned().collect()
    }

    /// The bytes of a module's requests, and of all requests.
    pub fn bytes(&self, module: &str) -> (usize, usize) {
        let rings = self.lock();
        (rings.by_module.get(module).map_or(0, |ring| ring.bytes), rings.bytes)
    }

    /// Forgets the requests of a module.
    pub fn forget(&self, module: &str) {
        let mut rings = self.lock();
        let gone = rings.by_module.remove(module).map_or(0, |ring| ring.bytes);
        rings.bytes -= gone;
    }

    /// Forgets all requests.
    pub fn clear(&self) {
        *self.lock() = Rings::default();
    }

    fn lock(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rings {
    /// Drops the oldest request of the module with the most bytes. False if there is none.
    fn drop_of_largest(&mut self) -> bool {
        let Some(largest) = self.by_module.values_mut().max_by_key(|ring| ring.bytes) else {
            return false;
        };
        let before = largest.bytes;
        let dropped = largest.drop_oldest();
        self.bytes -= before - largest.bytes;
        dropped
    }
}

impl Ring {
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.requests.pop_front() else { return false };
        self.bytes -= oldest.bytes();
        true
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{Operation, User};
    use innkeeper_core::review::{Gvk, Gvr, ReviewInput};

    use super::super::kept_request::REQUEST_BYTES_MAX;
    use super::super::review_call::ShownObjects;
    use super::*;

    /// A request with an object of this size.
    fn request(name: &str, bytes: usize) -> Option<KeptRequest> {
        let user = User::default();
        let input = ReviewInput {
            operation: Operation::Create,
            kind: Gvk::default(),
            resource: Gvr::default(),
            subresource: "",
            request_kind: None,
            request_resource: None,
            name,
            namespace: "n",
            user: &user,
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            background: false,
            parameters: "",
        };
        let object = Some(format!("\"{}\"", "x".repeat(bytes)));
        KeptRequest::of(&input, ShownObjects { object, old_object: None }, None)
    }

    fn names(requests: &RecentRequests, module: &str) -> Vec<String> {
        let all = requests.of(module);
        all.iter().map(|one| one.input("").name.to_owned()).collect()
    }

    #[test]
    fn ring_under_ten_thousand_requests_stays_in_its_bytes_and_keeps_the_newest() {
        let requests = RecentRequests::default();
        for index in 0..10_000 {
            let one = request(&index.to_string(), 30_000 * (index % 2)).unwrap();
            requests.keep(&"m".into(), one);
            let (of_module, all) = requests.bytes("m");
            assert!(of_module <= MODULE_BYTES_MAX && all == of_module);
        }
        let kept = requests.of("m");
        assert_eq!(names(&requests, "m")[0], "9999");
        assert_eq!(kept.iter().map(|one| one.bytes()).sum::<usize>(), requests.bytes("m").0);
        for index in 0..10_000 {
            requests.keep(&"small".into(), request(&index.to_string(), 0).unwrap());
        }
        assert_eq!(requests.of("small").len(), REQUESTS_MAX);
    }

    #[test]
    fn all_rings_together_are_bounded_and_the_largest_makes_room() {
        let requests = RecentRequests::default();
        requests.keep(&"calm".into(), request("one", 10).unwrap());
        for module in 0..20 {
            for _ in 0..100 {
                requests.keep(&module.to_string().into(), request("r", 60_000).unwrap());
                assert!(requests.bytes("").1 <= BYTES_MAX);
            }
        }
        assert_eq!(names(&requests, "calm"), ["one"]);
        let all: usize = (0..20).map(|module| requests.bytes(&module.to_string()).0).sum();
        assert_eq!(all + requests.bytes("calm").0, requests.bytes("").1);
    }

    #[test]
    fn request_above_the_limit_is_not_kept() {
        assert!(request("a", REQUEST_BYTES_MAX).is_none());
        assert!(request("a", REQUEST_BYTES_MAX / 2).is_some());
    }

    #[test]
    fn request_with_long_names_is_not_kept() {
        let (user, long) = (User::default(), "x".repeat(REQUEST_BYTES_MAX));
        let (kind, resource) = (Gvk::default(), Gvr::default());
        let plain = ReviewInput {
            operation: Operation::Create,
            kind,
            resource,
            subresource: "",
            request_kind: None,
            request_resource: None,
            name: "a",
            namespace: "n",
            user: &user,
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            background: false,
            parameters: "",
        };
        let of_kind = Gvk { kind: &long, ..kind };
        let of_resource = Gvr { group: &long, ..resource };
        for input in [
            ReviewInput { kind: of_kind, ..plain },
            ReviewInput { resource: of_resource, ..plain },
            ReviewInput { request_kind: Some(of_kind), ..plain },
            ReviewInput { request_resource: Some(of_resource), ..plain },
            ReviewInput { subresource: &long, ..plain },
        ] {
            assert!(KeptRequest::of(&input, ShownObjects::default(), None).is_none());
        }
        assert!(KeptRequest::of(&plain, ShownObjects::default(), None).is_some());
    }

    #[test]
    fn forgotten_module_frees_its_bytes() {
        let requests = RecentRequests::default();
        requests.keep(&"a".into(), request("a", 10).unwrap());
        requests.keep(&"b".into(), request("b", 10).unwrap());
        requests.forget("a");
        assert_eq!((requests.of("a").len(), requests.bytes("a").0), (0, 0));
        assert_eq!(requests.bytes("b").0, requests.bytes("b").1);
        requests.clear();
        assert_eq!(requests.bytes("b"), (0, 0));
    }
}
