//! Which modules fail in reconcile. A Module's condition changes only when the first primary fails
//! for some reason, when the last one recovers, and when a rough count of refused writes changes.

mod failures;
mod refused;
mod run_outcome;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_core::ObjectKey;
use innkeeper_modules::machine::RunFailure;
use innkeeper_modules::{Digest, Rejection, RetryPolicy};
use tokio::sync::Notify;

pub use failures::without_single_namespace;
pub use refused::{Count, Refused};
pub use run_outcome::{Failing, RunOutcome};

use crate::queue::ReconcileRequest;
use failures::{Failures, cause};

/// Whether the runs of a module succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunHealth {
    /// They succeed.
    Succeed(Refused),
    /// Some fail, for this reason: a missing right, or the first in alphabetical order, with the
    /// message of the first primary.
    Fail {
        /// The failure.
        failing: Failing,
        /// How many primaries fail for that reason.
        primaries: Count,
        /// The primaries with refused writes.
        refused: Refused,
    },
}

impl RunHealth {
    /// For the conditions of the Module: a note about refused writes.
    ///
    /// # Errors
    /// The failure.
    pub fn report(&self) -> Result<Option<String>, RunFailure> {
        match self {
            Self::Succeed(refused) => Ok(refused.note()),
            Self::Fail { failing: Failing { reason, message, forbidden }, primaries, refused } => {
                let message = match forbidden {
                    Some(_) => format!("The API server refuses writes for {primaries}: {message}."),
                    None => message.clone(),
                };
                let note = refused.note().map(|note| format!(" {note}")).unwrap_or_default();
                let rejection = Rejection::new(reason, message + &note, RetryPolicy::Later);
                Err(RunFailure { rejection, lacks_right: forbidden.is_some() })
            }
        }
    }
}

/// A change that the supervisor has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthChange {
    /// Whether the runs succeed.
    Runs(RunHealth),
    /// More primaries than allowed fail that did not fail before the swap.
    FailureThresholdExceeded {
        /// The revision whose failures they are.
        digest: Digest,
        /// The primaries, with reason and message; not all of them need count.
        new_failures: BTreeMap<ObjectKey, Failing>,
        /// The number of allowed failures.
        failures_max: u32,
    },
}

/// Which new failures the rollback window of a module allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollbackWindow {
    /// The active revision.
    pub digest: Digest,
    /// How many.
    pub failures_max: u32,
    /// Whether the module has primaries in several namespaces: then a missing right in one of them
    /// does not count.
    pub many_namespaces: bool,
}

/// The rollback window of a module.
#[derive(Debug)]
struct OpenWindow {
    allowed: RollbackWindow,
    /// Too many failures are reported, and the previous revision runs on them.
    is_checking: bool,
}

#[derive(Debug, Default)]
struct ModuleHealth {
    failures: Failures,
    /// The primaries with refused writes, each with the reason.
    refused: BTreeMap<ObjectKey, String>,
    reported: Option<RunHealth>,
    rollback_window: Option<OpenWindow>,
}

/// Which modules fail.
#[derive(Debug, Default)]
pub struct Health {
    modules: Mutex<BTreeMap<Arc<str>, ModuleHealth>>,
    /// Notified when there is a change to take.
    pub notify: Notify,
}

impl Health {
    /// Records the outcome of a run.
    pub fn record(&self, request: &ReconcileRequest, outcome: RunOutcome) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = modules.entry(request.module.clone()).or_default();
        module.failures.record(&request.key, outcome.failing);
        match outcome.refused {
            Some(refused) => module.refused.insert(request.key.clone(), refused),
            None => module.refused.remove(&request.key),
        };
        if module.reported.as_ref() != Some(&module.runs()) || module.exceeded_window().is_some() {
            self.notify.notify_one();
        }
    }

    /// Another revision is active, or the same with other settings: its runs are counted afresh.
    pub fn reset(&self, module: &str) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(module) = modules.get_mut(module) else { return };
        // In the rollback window the baseline is what failed before it.
        module.failures.reset(module.rollback_window.is_none());
        module.refused.clear();
        module.reported = None;
    }

    /// Counts, from now on, the failures of primaries that did not fail before the last swap.
    pub fn begin_rollback_window(&self, module: &Arc<str>, window: RollbackWindow) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let window = OpenWindow { allowed: window, is_checking: false };
        modules.entry(module.clone()).or_default().rollback_window = Some(window);
    }

    /// Goes on with the window of the same revision, if it is still open. Excludes the primaries
    /// that fail with the previous revision as well: they count as if they had failed before the
    /// swap.
    pub fn continue_rollback_window(
        &self,
        module: &str,
        window: RollbackWindow,
        excluded: impl IntoIterator<Item = ObjectKey>,
    ) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(module) = modules.get_mut(module) else { return };
        let Some(open) = module.rollback_window.as_mut() else { return };
        if open.allowed.digest != window.digest {
            return;
        }
        *open = OpenWindow { allowed: window, is_checking: false };
        module.failures.exclude(excluded);
        // Others may have failed during the check.
        if module.exceeded_window().is_some() {
            self.notify.notify_one();
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
        modules.get(module).map_or(RunHealth::Succeed(Refused::default()), ModuleHealth::runs)
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
            if let Some(RollbackWindow { digest, failures_max, .. }) = module.exceeded_window() {
                module.rollback_window.iter_mut().for_each(|window| window.is_checking = true);
                let new_failures = module.failures.new_failures();
                changes.push((
                    name.clone(),
                    HealthChange::FailureThresholdExceeded { digest, new_failures, failures_max },
                ));
            }
        }
        changes
    }
}

impl ModuleHealth {
    /// The rollback window, if more primaries fail than it allows and that is not reported yet.
    fn exceeded_window(&self) -> Option<RollbackWindow> {
        let OpenWindow { allowed, is_checking } = self.rollback_window.as_ref()?;
        let most = usize::try_from(allowed.failures_max).unwrap_or(usize::MAX);
        let is_exceeded = self.failures.new_count(allowed.many_namespaces) > most;
        (is_exceeded && !is_checking).then_some(*allowed)
    }

    fn runs(&self) -> RunHealth {
        let (before, reported) = match &self.reported {
            Some(RunHealth::Succeed(refused)) => (Some(refused), None),
            Some(RunHealth::Fail { failing, refused, .. }) => (Some(refused), Some(failing)),
            None => (None, None),
        };
        let refused = Refused::of(&self.refused, before);
        let Some((first, alike)) = self.failures.first() else {
            return RunHealth::Succeed(refused);
        };
        // One message stays as long as its cause does, also if another primary fails with it.
        let failing = reported.filter(|one| cause(one) == cause(first)).unwrap_or(first);
        let primaries = match failing.forbidden {
            Some(_) => Count::of(alike),
            None => Count::default(),
        };
        RunHealth::Fail { failing: failing.clone(), primaries, refused }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use innkeeper_modules::machine::reason;

    use super::*;
    use crate::reconcile::refusal::ForbiddenWrite;

    fn window(failures_max: u32) -> RollbackWindow {
        RollbackWindow { digest: Digest::of(b"m"), failures_max, many_namespaces: false }
    }

    fn request(name: &str) -> ReconcileRequest {
        ReconcileRequest { module: "m".into(), key: ObjectKey::new("n", name) }
    }

    fn failing(reason: &str, message: &str) -> Failing {
        Failing { reason: reason.into(), message: message.into(), forbidden: None }
    }

    fn fails(reason: &str, message: &str) -> RunOutcome {
        failing(reason, message).into()
    }

    fn succeeds() -> HealthChange {
        HealthChange::Runs(RunHealth::Succeed(Refused::default()))
    }

    #[test]
    fn health_changes_when_the_first_primary_fails_and_when_the_last_recovers() {
        let health = Health::default();
        health.record(&request("a"), RunOutcome::default());
        assert_eq!(health.take_changes(), [("m".into(), succeeds())]);
        health.record(&request("a"), fails("Trap", "a"));
        let fail = RunHealth::Fail {
            failing: failing("Trap", "a"),
            primaries: Count::default(),
            refused: Refused::default(),
        };
        assert_eq!(health.take_changes(), [("m".into(), HealthChange::Runs(fail))]);
        health.record(&request("b"), fails("Trap", "b"));
        health.record(&request("a"), RunOutcome::default());
        assert_eq!(health.take_changes(), []);
        health.record(&request("b"), RunOutcome::default());
        assert_eq!(health.take_changes(), [("m".into(), succeeds())]);
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
        let trap = || fails("Trap", "t");
        health.record(&request("a"), trap());
        health.reset("m");
        health.begin_rollback_window(&"m".into(), window(1));
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
        let excluded = || ["b", "c"].map(|name| request(name).key);
        health.continue_rollback_window("m", window(1), excluded());
        assert_eq!(too_many(&health), None);
        health.record(&request("e"), trap());
        assert_eq!(too_many(&health), Some(2));
    }

    #[test]
    fn check_of_an_earlier_revision_does_not_change_the_window_of_another() {
        let health = Health::default();
        let excluded = || [request("a").key];
        let other = RollbackWindow { digest: Digest::of(b"other"), ..window(0) };
        health.begin_rollback_window(&"m".into(), window(0));
        health.record(&request("a"), fails("Trap", "t"));
        assert_eq!(too_many(&health), Some(1));
        // Given a window that ended during the check, the check opens it no more.
        health.end_rollback_window("m");
        health.continue_rollback_window("m", window(0), []);
        assert_eq!(too_many(&health), None);
        // Nor does it exclude failures of the next revision.
        health.begin_rollback_window(&"m".into(), other);
        health.continue_rollback_window("m", window(0), excluded());
        assert_eq!(too_many(&health), Some(1));
        health.continue_rollback_window("m", other, excluded());
        assert_eq!(too_many(&health), None);
    }

    #[test]
    fn settings_that_change_during_a_check_keep_what_failed_before_the_swap() {
        let health = Health::default();
        health.begin_rollback_window(&"m".into(), window(0));
        health.record(&request("a"), fails("Trap", "t"));
        assert_eq!(too_many(&health), Some(1));
        health.reset("m");
        health.continue_rollback_window("m", window(0), []);
        health.record(&request("a"), fails("Trap", "t"));
        assert_eq!(too_many(&health), Some(1));
    }

    #[test]
    fn without_a_rollback_window_no_failure_threshold_applies() {
        let health = Health::default();
        health.record(&request("a"), RunOutcome::default());
        health.reset("m");
        health.begin_rollback_window(&"m".into(), window(0));
        health.end_rollback_window("m");
        health.record(&request("a"), fails("Trap", "t"));
        assert_eq!(too_many(&health), None);
    }

    /// The condition of the Module after the changes since the last call, if it changes.
    fn condition(health: &Health) -> Option<Result<Option<String>, RunFailure>> {
        health.take_changes().into_iter().find_map(|(_, change)| match change {
            HealthChange::Runs(runs) => Some(runs.report()),
            HealthChange::FailureThresholdExceeded { .. } => None,
        })
    }

    #[test]
    fn refused_write_is_named_and_leaves_the_module_healthy() {
        let health = Health::default();
        health.begin_rollback_window(&"m".into(), window(0));
        let refused = || RunOutcome { refused: Some("Invalid".to_owned()), failing: None };
        health.record(&request("a"), RunOutcome::default());
        assert_eq!(condition(&health), Some(Ok(None)));
        health.record(&request("a"), refused());
        let note = condition(&health).unwrap().unwrap().unwrap();
        assert!(note.starts_with("Writes for 1 primary are refused: n/a (Invalid)"), "{note}");
        // It causes no rollback, and a repetition is no news.
        health.record(&request("a"), refused());
        assert_eq!(health.take_changes(), []);
        health.record(&request("a"), RunOutcome::default());
        assert_eq!(condition(&health), Some(Ok(None)));
    }

    #[test]
    fn module_that_lacks_a_right_fails_with_the_number_of_primaries_and_in_the_rollback_window() {
        let health = Health::default();
        health.begin_rollback_window(&"m".into(), window(0));
        let write = Arc::new(ForbiddenWrite {
            kind: Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps")),
            namespace: "n".into(),
            verb: "create".into(),
        });
        let lacks = |message: &str| -> RunOutcome {
            Failing {
                reason: reason::FORBIDDEN.to_owned(),
                message: message.to_owned(),
                forbidden: Some(write.clone()),
            }
            .into()
        };
        health.record(&request("a"), lacks("x may not create configmaps"));
        health.record(&request("b"), lacks("x may not create configmaps elsewhere"));
        // A guest may choose the same reason.
        health.record(&request("0"), fails("Forbidden", "the guest says so"));
        let changes = health.take_changes();
        let [(_, HealthChange::Runs(runs)), (_, exceeded)] = &changes[..] else {
            panic!("{changes:?}")
        };
        let expected =
            "The API server refuses writes for 2 primaries: x may not create configmaps.";
        let RunFailure { rejection, lacks_right } = runs.report().unwrap_err();
        assert_eq!((&*rejection.reason, &*rejection.message), ("Forbidden", expected));
        assert!(lacks_right);
        assert!(matches!(exceeded, HealthChange::FailureThresholdExceeded { .. }), "{exceeded:?}");
    }
}
