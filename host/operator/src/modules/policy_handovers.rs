//! The policies that the leader has handed over to the replicas, by module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_modules::Module;
use tokio::sync::watch;

use super::waiting_settings::SettingsPreviews;
use crate::policies::record_keeper::Goal;
use crate::policies::{Handover, PolicyRecord};

/// The policies that were handed over since the start.
pub(super) struct PolicyHandovers {
    pub(super) how: Handover,
    /// The last record of each module.
    pub(super) decided: BTreeMap<String, Arc<PolicyRecord>>,
    /// The modules of which there may be a record.
    pub(super) recorded: BTreeSet<String>,
    /// What the task of each module works towards. A task goes on after its Module is gone, so that
    /// no policy stays.
    pub(super) goals: BTreeMap<String, watch::Sender<Goal>>,
    /// Why the record of a module is not written.
    pub(super) problems: BTreeMap<String, String>,
    /// Settings that are not decided yet.
    pub(super) settings: SettingsPreviews,
}

impl PolicyHandovers {
    /// Nothing handed over yet.
    pub(super) fn new(how: Handover) -> Self {
        Self {
            how,
            decided: BTreeMap::new(),
            recorded: BTreeSet::new(),
            goals: BTreeMap::new(),
            problems: BTreeMap::new(),
            settings: SettingsPreviews::default(),
        }
    }

    /// Notes a Module whose status says that it has a policy: the host had handed it over before it
    /// was started.
    pub(super) fn saw(&mut self, module: &Module) {
        self.settings.saw(module);
        if module.status.as_ref().is_some_and(|status| status.policy.is_some()) {
            self.recorded.insert(module.metadata.name.clone());
        }
    }

    /// Why the record of a module is not written, if it is not.
    pub(super) fn problem(&self, module: &str) -> Option<&str> {
        self.problems.get(module).map(String::as_str)
    }
}
