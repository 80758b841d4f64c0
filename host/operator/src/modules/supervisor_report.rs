//! What the supervisor shows to the other tasks of its operator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use innkeeper_cluster::Env;
use innkeeper_contract::Condition;

use super::liveness::SupervisorLiveness;

/// What the supervisor shows to the other tasks of its operator.
#[derive(Debug)]
pub struct SupervisorReport {
    /// Whether the supervisor makes progress.
    pub liveness: SupervisorLiveness,
    is_listed: AtomicBool,
    conditions: Mutex<BTreeMap<String, Vec<Condition>>>,
}

impl SupervisorReport {
    /// The report before the supervisor runs.
    pub fn new(env: &Env) -> Self {
        Self {
            liveness: SupervisorLiveness::new(env),
            is_listed: AtomicBool::new(false),
            conditions: Mutex::default(),
        }
    }

    /// Notes that the Modules have been listed.
    pub fn mark_listed(&self) {
        self.is_listed.store(true, Ordering::Release);
    }

    /// Whether the Modules have been listed.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// The conditions that were last reported of each module, also of one that is not active.
    pub fn conditions(&self) -> BTreeMap<String, Vec<Condition>> {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports the conditions of a module.
    pub fn set_conditions(&self, module: &str, conditions: Vec<Condition>) {
        let mut reported = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        reported.insert(module.to_owned(), conditions);
    }

    /// Forgets a module that was deleted.
    pub fn forget(&self, module: &str) {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).remove(module);
    }
}
