//! Which modules fail in reconcile. A Module's condition has no counts: it changes only when the
//! first primary fails for some reason, or the last one recovers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_core::ObjectKey;
use tokio::sync::Notify;

use crate::queue::ReconcileRequest;

/// A reason and its message: `(GuestTrapped, message)`.
pub type Failing = (String, String);

/// Whether the runs of a module succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunHealth {
    /// They succeed.
    Succeed,
    /// Some fail, for this reason: the first in alphabetical order, with the message of the
    /// first primary.
    Fail(Failing),
}

/// A change that the supervisor has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// Whether the runs succeed.
    Runs(RunHealth),
    /// More primaries than allowed fail that did not fail before the swap.
    FailureThresholdExceeded {
        /// The primaries, with reason and message.
        new_failures: BTreeMap<ObjectKey, Failing>,
        /// The number of allowed failures.
        failures_max: u32,
    },
}

#[derive(Debug, Default)]
struct ModuleHealth {
    failing: BTreeMap<ObjectKey, Failing>,
    reported: Option<RunHealth>,
    /// The primaries that failed when this revision became active.
    baseline: BTreeSet<ObjectKey>,
    /// In the rollback window: the number of allowed new failures.
    rollback_window: Option<u32>,
}

/// Which modules fail.
#[derive(Debug, Default)]
pub struct Health {
    modules: Mutex<BTreeMap<Arc<str>, ModuleHealth>>,
    /// Notified when there is a change to take.
    pub notify: Notify,
}

impl Health {
    /// Records the result of a run: `None` if it did not fail.
    pub fn record(&self, request: &ReconcileRequest, failing: Option<Failing>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = modules.entry(request.module.clone()).or_default();
        match failing {
            Some(failing) => module.failing.insert(request.key.clone(), failing),
            None => module.failing.remove(&request.key),
        };
        if module.reported.as_ref() != Some(&module.runs()) || module.too_many().is_some() {
            self.notify.notify_one();
        }
    }

    /// Another revision is active, or the same with other settings: its runs are counted afresh.
    pub fn reset(&self, module: &str) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(module) = modules.get_mut(module) else { return };
        let failing = std::mem::take(&mut module.failing);
        // In the rollback window the baseline is what failed before it.
        if module.rollback_window.is_none() {
            module.baseline = failing.into_keys().collect();
        }
        module.reported = None;
    }

    /// Counts, from now on, the failures of primaries that did not fail before the last swap.
    pub fn begin_rollback_window(&self, module: &Arc<str>, failures_max: u32) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.entry(module.clone()).or_default().rollback_window = Some(failures_max);
    }

    /// Excludes primaries that fail with the previous revision as well: they count as if they had
    /// failed before the swap.
    pub fn exclude(&self, module: &str, keys: impl IntoIterator<Item = ObjectKey>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get_mut(module) {
            module.baseline.extend(keys);
        }
    }

    /// Stops to count new failures.
    pub fn end_rollback_window(&self, module: &str) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get_mut(module) {
            module.rollback_window = None;
        }
    }

    /// Whether the runs of a module succeed.
    pub fn runs(&self, module: &str) -> RunHealth {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.get(module).map_or(RunHealth::Succeed, ModuleHealth::runs)
    }

    /// Forgets a module.
    pub fn forget_module(&self, module: &str) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(module);
    }

    /// Returns the changes since the last call, by module.
    pub fn take_changes(&self) -> Vec<(Arc<str>, HealthChange)> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (name, module) in &mut *modules {
            let runs = module.runs();
            if module.reported.as_ref() != Some(&runs) {
                module.reported = Some(runs.clone());
                changes.push((name.clone(), HealthChange::Runs(runs)));
            }
            if let Some((fresh, failures_max)) = module.too_many() {
                module.rollback_window = None;
                changes.push((
                    name.clone(),
                    HealthChange::FailureThresholdExceeded { new_failures: fresh, failures_max },
                ));
            }
        }
        changes
    }
}

impl ModuleHealth {
    /// In the rollback window, and more primaries fail than allowed: which, and how many may.
    fn too_many(&self) -> Option<(BTreeMap<ObjectKey, Failing>, u32)> {
        let failures_max = self.rollback_window?;
        let most = usize::try_from(failures_max).unwrap_or(usize::MAX);
        let fresh = || self.failing.iter().filter(|(key, _)| !self.baseline.contains(*key));
        (fresh().count() > most)
            .then(|| (fresh().map(|(key, how)| (key.clone(), how.clone())).collect(), failures_max))
    }

    fn runs(&self) -> RunHealth {
        let first = self.failing.values().min_by(|a, b| a.0.cmp(&b.0));
        match (first, &self.reported) {
            (None, _) => RunHealth::Succeed,
            // One message stays as long as its reason does, also if another primary fails with it.
            (Some(first), Some(RunHealth::Fail(reported))) if first.0 == reported.0 => {
                RunHealth::Fail(reported.clone())
            }
            (Some(first), _) => RunHealth::Fail(first.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str) -> ReconcileRequest {
        ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", name) }
    }

    fn failing(reason: &str, message: &str) -> Failing {
        (reason.into(), message.into())
    }

    #[test]
    fn health_changes_when_the_first_primary_fails_and_when_the_last_recovers() {
        let health = Health::default();
        health.record(&request("a"), None);
        assert_eq!(health.take_changes(), [("m".into(), HealthChange::Runs(RunHealth::Succeed))]);
        health.record(&request("a"), Some(failing("Trap", "a")));
        let fail = RunHealth::Fail(failing("Trap", "a"));
        assert_eq!(health.take_changes(), [("m".into(), HealthChange::Runs(fail))]);
        health.record(&request("b"), Some(failing("Trap", "b")));
        health.record(&request("a"), None);
        assert_eq!(health.take_changes(), []);
        health.record(&request("b"), None);
        assert_eq!(health.take_changes(), [("m".into(), HealthChange::Runs(RunHealth::Succeed))]);
    }

    fn too_many(health: &Health) -> Option<usize> {
        health.take_changes().into_iter().find_map(|(_, health_change)| match health_change {
            HealthChange::FailureThresholdExceeded { new_failures: fresh, .. } => Some(fresh.len()),
            HealthChange::Runs(_) => None,
        })
    }

    #[test]
    fn in_the_rollback_window_only_new_failures_are_counted() {
        let health = Health::default();
        let trap = || Some(failing("Trap", "t"));
        health.record(&request("a"), trap());
        health.reset("m");
        health.begin_rollback_window(&"m".into(), 1);
        health.record(&request("a"), trap());
        health.record(&request("b"), trap());
        assert_eq!(too_many(&health), None, "one that failed before, and one that may");
        // Other settings in the meantime change nothing about what failed before.
        health.reset("m");
        for name in ["a", "b", "c"] {
            health.record(&request(name), trap());
        }
        assert_eq!(too_many(&health), Some(2));
        health.record(&request("d"), trap());
        assert_eq!(too_many(&health), None, "it is reported once");
        // Two of them fail with the previous revision as well.
        health.exclude("m", ["b", "c"].map(|name| request(name).key));
        health.begin_rollback_window(&"m".into(), 1);
        assert_eq!(too_many(&health), None);
        health.record(&request("e"), trap());
        assert_eq!(too_many(&health), Some(2));
    }

    #[test]
    fn without_a_rollback_window_no_failure_threshold_applies() {
        let health = Health::default();
        health.record(&request("a"), None);
        health.reset("m");
        health.begin_rollback_window(&"m".into(), 0);
        health.end_rollback_window("m");
        health.record(&request("a"), Some(failing("Trap", "t")));
        assert_eq!(too_many(&health), None);
    }
}
