//! The failing primaries of a module, counted by cause: the outcome of each run is recorded under
//! one lock, so a record must not look at all of them.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_core::ObjectKey;

use super::run_outcome::Failing;

/// What failures have in common: whether the guest failed, and the reason. A missing right comes
/// first: an administrator has to grant it, whatever else fails.
type Cause = (bool, String);

/// The failing primaries of a module.
#[derive(Debug, Default)]
pub(super) struct Failures {
    primaries: BTreeMap<ObjectKey, Failing>,
    causes: BTreeMap<Cause, BTreeSet<ObjectKey>>,
    /// The primaries that failed when this revision became active.
    baseline: BTreeSet<ObjectKey>,
    new: NewFailures,
}

/// How many primaries fail that did not fail when this revision became active.
#[derive(Debug, Default)]
struct NewFailures {
    of_guest: usize,
    /// For lack of a right, by namespace of the primary.
    forbidden: BTreeMap<Box<str>, usize>,
}

/// The cause of a failure.
pub(super) fn cause(failing: &Failing) -> Cause {
    (failing.forbidden.is_none(), failing.reason.clone())
}

impl Failures {
    /// Records how a primary fails, or that it does not fail.
    pub(super) fn record(&mut self, key: &ObjectKey, failing: Option<Failing>) {
        if let Some(before) = self.primaries.remove(key) {
            let cause = cause(&before);
            if let Some(alike) = self.causes.get_mut(&cause) {
                alike.remove(key);
                if alike.is_empty() {
                    self.causes.remove(&cause);
                }
            }
            if !self.baseline.contains(key) {
                self.new.remove(key, &before);
            }
        }
        if let Some(failing) = failing {
            self.causes.entry(cause(&failing)).or_default().insert(key.clone());
            if !self.baseline.contains(key) {
                self.new.add(key, &failing);
            }
            self.primaries.insert(key.clone(), failing);
        }
    }

    /// The failure of the first primary with the first cause, and how many have this cause.
    pub(super) fn first(&self) -> Option<(&Failing, usize)> {
        let (_, alike) = self.causes.first_key_value()?;
        Some((self.primaries.get(alike.first()?)?, alike.len()))
    }

    /// Forgets all. What failed becomes the baseline if `is_baseline`.
    pub(super) fn reset(&mut self, is_baseline: bool) {
        let before = std::mem::take(self);
        self.baseline =
            if is_baseline { before.primaries.into_keys().collect() } else { before.baseline };
    }

    /// Counts primaries as if they had failed when this revision became active.
    pub(super) fn exclude(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            if let Some(failing) = self.primaries.get(&key)
                && !self.baseline.contains(&key)
            {
                self.new.remove(&key, failing);
            }
            self.baseline.insert(key);
        }
    }

    /// How many primaries fail that did not fail when this revision became active, as far as they
    /// count in a rollback window of a module with primaries in `many_namespaces` or not.
    pub(super) fn new_count(&self, many_namespaces: bool) -> usize {
        let NewFailures { of_guest, forbidden } = &self.new;
        if many_namespaces && forbidden.len() == 1 {
            *of_guest
        } else {
            of_guest + forbidden.values().sum::<usize>()
        }
    }

    /// The primaries that fail and did not fail when this revision became active.
    pub(super) fn new_failures(&self) -> BTreeMap<ObjectKey, Failing> {
        let new = self.primaries.iter().filter(|(key, _)| !self.baseline.contains(*key));
        new.map(|(key, failing)| (key.clone(), failing.clone())).collect()
    }
}

impl NewFailures {
    fn add(&mut self, key: &ObjectKey, failing: &Failing) {
        match failing.forbidden {
            Some(_) => *self.forbidden.entry(key.namespace().into()).or_default() += 1,
            None => self.of_guest += 1,
        }
    }

    fn remove(&mut self, key: &ObjectKey, failing: &Failing) {
        if failing.forbidden.is_none() {
            self.of_guest = self.of_guest.saturating_sub(1);
        } else if let Some(count) = self.forbidden.get_mut(key.namespace()) {
            *count -= 1;
            if *count == 0 {
                self.forbidden.remove(key.namespace());
            }
        }
    }
}

/// Leaves of new failures those that count in a rollback window: a missing right in one of many
/// namespaces does not, since a tenant may be the cause, as with a namespace without a Role.
pub fn without_single_namespace(
    mut failures: BTreeMap<ObjectKey, Failing>,
    many_namespaces: bool,
) -> BTreeMap<ObjectKey, Failing> {
    let is_forbidden = |failing: &Failing| failing.forbidden.is_some();
    let forbidden = failures.iter().filter(|(_, failing)| is_forbidden(failing));
    let namespaces: BTreeSet<&str> = forbidden.map(|(key, _)| key.namespace()).collect();
    if many_namespaces && namespaces.len() == 1 {
        failures.retain(|_, failing| !is_forbidden(failing));
    }
    failures
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;

    use super::*;
    use crate::reconcile::refusal::ForbiddenWrite;

    fn failing(reason: &str, is_forbidden: bool) -> Failing {
        let write = ForbiddenWrite {
            kind: Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps")),
            namespace: "web".into(),
            verb: "create".into(),
        };
        let forbidden = is_forbidden.then(|| Arc::new(write));
        Failing { reason: reason.to_owned(), message: String::new(), forbidden }
    }

    fn first(failures: &Failures) -> Option<(String, bool, usize)> {
        let (failing, count) = failures.first()?;
        Some((failing.reason.clone(), failing.forbidden.is_some(), count))
    }

    #[test]
    fn missing_right_comes_first_and_differs_from_a_guests_reason_of_the_same_text() {
        let key = |name| ObjectKey::new("web", name);
        let mut failures = Failures::default();
        failures.record(&key("a"), Some(failing("Forbidden", false)));
        failures.record(&key("b"), Some(failing("Crashed", false)));
        assert_eq!(first(&failures), Some(("Crashed".to_owned(), false, 1)));
        failures.record(&key("c"), Some(failing("Forbidden", true)));
        failures.record(&key("b"), Some(failing("Forbidden", true)));
        assert_eq!(first(&failures), Some(("Forbidden".to_owned(), true, 2)));
        failures.record(&key("b"), None);
        failures.record(&key("c"), None);
        assert_eq!(first(&failures), Some(("Forbidden".to_owned(), false, 1)));
        failures.record(&key("a"), None);
        assert_eq!(first(&failures), None);
    }

    #[test]
    fn missing_right_in_one_of_many_namespaces_does_not_count() {
        let mut failures = Failures::default();
        let counts = |failures: &Failures| {
            let of = |many| without_single_namespace(failures.new_failures(), many).len();
            assert_eq!([of(false), of(true)], [false, true].map(|many| failures.new_count(many)));
            [of(false), of(true)]
        };
        failures.record(&ObjectKey::new("a", "one"), Some(failing("Forbidden", true)));
        failures.record(&ObjectKey::new("a", "two"), Some(failing("Forbidden", true)));
        assert_eq!(counts(&failures), [2, 0]);
        failures.record(&ObjectKey::new("a", "three"), Some(failing("Crashed", false)));
        assert_eq!(counts(&failures), [3, 1]);
        failures.record(&ObjectKey::new("b", "one"), Some(failing("Forbidden", true)));
        assert_eq!(counts(&failures), [4, 4]);
        failures.exclude([ObjectKey::new("a", "one"), ObjectKey::new("c", "one")]);
        assert_eq!(counts(&failures), [3, 3]);
        failures.record(&ObjectKey::new("a", "two"), None);
        assert_eq!(counts(&failures), [2, 1]);
        failures.reset(true);
        assert_eq!(counts(&failures), [0, 0]);
        failures.record(&ObjectKey::new("b", "one"), Some(failing("Forbidden", true)));
        assert_eq!(counts(&failures), [0, 0], "it failed before");
    }
}
