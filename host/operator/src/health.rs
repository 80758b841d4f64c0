//! Which modules fail in reconcile, told without counts: a Module's condition changes
//! only when the first primary fails for some reason, or the last one recovers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_core::Key;
use tokio::sync::Notify;

use crate::queue::Work;

/// A reason and what it means: `(GuestTrapped, message)`.
pub type Failing = (String, String);

/// How the runs of a module go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// They succeed.
    Succeed,
    /// Some fail, for this reason: the first in alphabetical order, with the message of the
    /// first primary.
    Fail(Failing),
}

#[derive(Debug, Default)]
struct OfModule {
    failing: BTreeMap<Key, Failing>,
    told: Option<Runs>,
}

/// Which modules fail.
#[derive(Debug, Default)]
pub struct Health {
    modules: Mutex<BTreeMap<Arc<str>, OfModule>>,
    /// Rings when there is something to tell.
    pub bell: Notify,
}

impl Health {
    /// A run of a key ended: `None` if it did not fail.
    pub fn note(&self, work: &Work, failing: Option<Failing>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = modules.entry(work.module.clone()).or_default();
        match failing {
            Some(failing) => module.failing.insert(work.key.clone(), failing),
            None => module.failing.remove(&work.key),
        };
        if module.told.as_ref() != Some(&module.runs()) {
            self.bell.notify_one();
        }
    }

    /// Forgets a module.
    pub fn forget_module(&self, module: &str) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(module);
    }

    /// What has changed since it was last asked, by module.
    pub fn take_changes(&self) -> Vec<(Arc<str>, Runs)> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (name, module) in &mut *modules {
            let runs = module.runs();
            if module.told.as_ref() != Some(&runs) {
                module.told = Some(runs.clone());
                changes.push((name.clone(), runs));
            }
        }
        changes
    }
}

impl OfModule {
    fn runs(&self) -> Runs {
        let first = self.failing.values().min_by(|a, b| a.0.cmp(&b.0));
        match (first, &self.told) {
            (None, _) => Runs::Succeed,
            // One message stays as long as its reason does, whoever fails.
            (Some(first), Some(Runs::Fail(told))) if first.0 == told.0 => Runs::Fail(told.clone()),
            (Some(first), _) => Runs::Fail(first.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(name: &str) -> Work {
        Work { module: "m".into(), key: Key::new("n", name) }
    }

    fn failing(reason: &str, message: &str) -> Failing {
        (reason.into(), message.into())
    }

    #[test]
    fn it_is_told_when_the_first_fails_and_when_the_last_recovers() {
        let health = Health::default();
        health.note(&work("a"), None);
        assert_eq!(health.take_changes(), [("m".into(), Runs::Succeed)]);
        health.note(&work("a"), Some(failing("Trap", "a")));
        assert_eq!(health.take_changes(), [("m".into(), Runs::Fail(failing("Trap", "a")))]);
        health.note(&work("b"), Some(failing("Trap", "b")));
        health.note(&work("a"), None);
        assert_eq!(health.take_changes(), []);
        health.note(&work("b"), None);
        assert_eq!(health.take_changes(), [("m".into(), Runs::Succeed)]);
    }
}
