//! Which modules fail in reconcile, told without counts: a Module's condition changes
//! only when the first primary fails for some reason, or the last one recovers.

use std::collections::{BTreeMap, BTreeSet};
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

/// What is to be told of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// How its runs go.
    Runs(Runs),
    /// Since its swap these primaries fail that did not fail before: more than may.
    TooManyFail {
        /// Which, and how.
        fresh: BTreeMap<Key, Failing>,
        /// So many may.
        failures_max: u32,
    },
}

#[derive(Debug, Default)]
struct OfModule {
    failing: BTreeMap<Key, Failing>,
    told: Option<Runs>,
    /// What failed when this version began to serve.
    before: BTreeSet<Key>,
    /// It is on probation: so many may fail that did not fail before.
    probation: Option<u32>,
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
        if module.told.as_ref() != Some(&module.runs()) || module.too_many().is_some() {
            self.bell.notify_one();
        }
    }

    /// Another version serves, or the same with other settings: how its runs go is its own.
    pub fn swapped(&self, module: &str) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(module) = modules.get_mut(module) else { return };
        let failing = std::mem::take(&mut module.failing);
        // On probation what failed before it counts.
        if module.probation.is_none() {
            module.before = failing.into_keys().collect();
        }
        module.told = None;
    }

    /// From now on it counts what fails that did not fail before the last swap.
    pub fn begin_probation(&self, module: &Arc<str>, failures_max: u32) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.entry(module.clone()).or_default().probation = Some(failures_max);
    }

    /// These primaries would fail with the version before as well: they count as if they had
    /// failed before the swap.
    pub fn forgive(&self, module: &str, keys: impl IntoIterator<Item = Key>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get_mut(module) {
            module.before.extend(keys);
        }
    }

    /// What fails is only told from now on.
    pub fn end_probation(&self, module: &str) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get_mut(module) {
            module.probation = None;
        }
    }

    /// How the runs of a module go.
    pub fn runs(&self, module: &str) -> Runs {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.get(module).map_or(Runs::Succeed, OfModule::runs)
    }

    /// Forgets a module.
    pub fn forget_module(&self, module: &str) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).remove(module);
    }

    /// What has changed since it was last asked, by module.
    pub fn take_news(&self) -> Vec<(Arc<str>, News)> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        for (name, module) in &mut *modules {
            let runs = module.runs();
            if module.told.as_ref() != Some(&runs) {
                module.told = Some(runs.clone());
                changes.push((name.clone(), News::Runs(runs)));
            }
            if let Some((fresh, failures_max)) = module.too_many() {
                module.probation = None;
                changes.push((name.clone(), News::TooManyFail { fresh, failures_max }));
            }
        }
        changes
    }
}

impl OfModule {
    /// On probation, and more fail than may: which, and how many may.
    fn too_many(&self) -> Option<(BTreeMap<Key, Failing>, u32)> {
        let failures_max = self.probation?;
        let most = usize::try_from(failures_max).unwrap_or(usize::MAX);
        let fresh = || self.failing.iter().filter(|(key, _)| !self.before.contains(*key));
        (fresh().count() > most)
            .then(|| (fresh().map(|(key, how)| (key.clone(), how.clone())).collect(), failures_max))
    }

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
        assert_eq!(health.take_news(), [("m".into(), News::Runs(Runs::Succeed))]);
        health.note(&work("a"), Some(failing("Trap", "a")));
        let fail = Runs::Fail(failing("Trap", "a"));
        assert_eq!(health.take_news(), [("m".into(), News::Runs(fail))]);
        health.note(&work("b"), Some(failing("Trap", "b")));
        health.note(&work("a"), None);
        assert_eq!(health.take_news(), []);
        health.note(&work("b"), None);
        assert_eq!(health.take_news(), [("m".into(), News::Runs(Runs::Succeed))]);
    }

    fn too_many(health: &Health) -> Option<usize> {
        health.take_news().into_iter().find_map(|(_, news)| match news {
            News::TooManyFail { fresh, .. } => Some(fresh.len()),
            News::Runs(_) => None,
        })
    }

    #[test]
    fn on_probation_it_counts_what_did_not_fail_before() {
        let health = Health::default();
        let trap = || Some(failing("Trap", "t"));
        health.note(&work("a"), trap());
        health.swapped("m");
        health.begin_probation(&"m".into(), 1);
        health.note(&work("a"), trap());
        health.note(&work("b"), trap());
        assert_eq!(too_many(&health), None, "one that failed before, and one that may");
        // Other settings in the meantime change nothing about what failed before.
        health.swapped("m");
        for name in ["a", "b", "c"] {
            health.note(&work(name), trap());
        }
        assert_eq!(too_many(&health), Some(2));
        health.note(&work("d"), trap());
        assert_eq!(too_many(&health), None, "it is told once");
        // Two of them would fail with the version before as well.
        health.forgive("m", ["b", "c"].map(|name| work(name).key));
        health.begin_probation(&"m".into(), 1);
        assert_eq!(too_many(&health), None);
        health.note(&work("e"), trap());
        assert_eq!(too_many(&health), Some(2));
    }

    #[test]
    fn without_a_probation_nothing_is_too_many() {
        let health = Health::default();
        health.note(&work("a"), None);
        health.swapped("m");
        health.begin_probation(&"m".into(), 0);
        health.end_probation("m");
        health.note(&work("a"), Some(failing("Trap", "t")));
        assert_eq!(too_many(&health), None);
    }
}
