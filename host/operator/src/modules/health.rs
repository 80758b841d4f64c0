//! Which modules fail in reconcile. A Module's condition changes only when the first primary fails
//! for some reason, when the last one recovers, and when a rough count of refused writes changes;
//! in the long run no more often than every 15 s.

mod failures;
mod refused_writes;
mod report_budget;
mod run_outcome;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use innkeeper_core::ObjectKey;
use innkeeper_modules::machine::RunFailure;
use innkeeper_modules::{Digest, Rejection, RetryPolicy};
use tokio::sync::Notify;

pub use failures::without_single_namespace;
pub use refused_writes::{Count, RefusedWrites};
pub use run_outcome::{Failing, MessagePlace, Refusal, RunOutcome};

use crate::queue::ReconcileRequest;
use failures::{Failures, cause};
use report_budget::ReportBudget;

/// Whether the runs of a module succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunHealth {
    /// They succeed.
    Succeed(RefusedWrites),
    /// Some fail, for this reason: a missing right, or the first in alphabetical order, with the
    /// message of the first primary.
    Fail {
        /// The failure.
        failing: Failing,
        /// How many primaries fail for that reason.
        primaries: Count,
        /// The primaries with refused writes.
        refused: RefusedWrites,
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
    /// The primaries with refused writes, and why.
    refused: BTreeMap<ObjectKey, Refusal>,
    reported: Option<RunHealth>,
    /// How soon another change may be reported.
    budget: ReportBudget,
    /// A change waits for that.
    is_waiting: bool,
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
        let is_changed = !module.is_waiting && module.reported.as_ref() != Some(&module.runs());
        if is_changed || module.exceeded_window().is_some() {
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
        module.is_waiting = false;
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
        modules.get(module).map_or(RunHealth::Succeed(RefusedWrites::default()), ModuleHealth::runs)
    }

    /// Forgets a module.
    pub fn forget_module(&self, module: &str) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(module);
    }

    /// Returns the changes since the last call, by module. A module whose runs change too often has
    /// none for a while; also returns when to call again, if so.
    pub fn take_changes(&self, now: Duration) -> (Vec<(Arc<str>, HealthChange)>, Option<Duration>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut changes, mut due) = (Vec::new(), None);
        for (name, module) in &mut *modules {
            match module.take_runs(now) {
                Ok(runs) => {
                    changes.extend(runs.map(|runs| (name.clone(), HealthChange::Runs(runs))));
                }
                Err(later) => due = due.into_iter().chain([later]).min(),
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
        (changes, due)
    }
}

impl ModuleHealth {
    /// Whether the runs succeed, if that has changed since the last report.
    ///
    /// # Errors
    /// If it was reported too often: from when on it may be reported.
    fn take_runs(&mut self, now: Duration) -> Result<Option<RunHealth>, Duration> {
        self.is_waiting = false;
        let runs = self.runs();
        match &self.reported {
            Some(reported) if *reported == runs => return Ok(None),
            Some(_) => self.budget.spend(now).inspect_err(|_| self.is_waiting = true)?,
            // The first report of a revision replaces one about another.
            None => {}
        }
        self.reported = Some(runs.clone());
        Ok(Some(runs))
    }

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
        let refused = RefusedWrites::of(&self.refused, before);
        let Some((first, alike)) = self.failures.first() else {
            return RunHealth::Succeed(refused);
        };
        // One message stays as long as its cause does, also if another primary fails with it.
        let failing = reported.filter(|one| cause(one) == cause(first)).unwrap_or(first);
        let primaries = match (&failing.forbidden, &self.reported) {
            (Some(_), Some(RunHealth::Fail { primaries, .. })) => {
                Count::after(alike, Some(*primaries))
            }
            (Some(_), _) => Count::after(alike, None),
            (None, _) => Count::default(),
        };
        RunHealth::Fail { failing: failing.clone(), primaries, refused }
    }
}

#[cfg(test)]
mod tests;
