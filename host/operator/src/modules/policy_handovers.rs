//! The policies that the leader has handed over to the replicas, by module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_modules::{Digest, Module, Revision};
use tokio::sync::watch;

use super::waiting_settings::SettingsPreviews;
use crate::policies::record_keeper::Goal;
use crate::policies::{AuditState, Handover, PolicyRecord, PolicyStates};

/// The policies that were handed over since the start.
pub(super) struct PolicyHandovers {
    pub(super) how: Handover,
    /// The last record of each module.
    pub(super) decided: BTreeMap<String, Arc<PolicyRecord>>,
    /// The modules of which there may be a record.
    pub(super) recorded: BTreeSet<String>,
    /// The active components whose policy reviewed until the Module removed `spec.policy`.
    withdrawn: BTreeMap<String, Digest>,
    /// The modules whose settings were held when the host started.
    held_before: BTreeSet<String>,
    /// The goal of the task of each module. A task continues after its Module is deleted, so that
    /// it deletes the record.
    pub(super) goals: BTreeMap<String, watch::Sender<Goal>>,
    /// Why the record of a module is not written.
    pub(super) problems: BTreeMap<String, String>,
    /// Whether this host leads the policies of its replicas.
    pub(super) is_leading: bool,
    /// What the leader knows of each policy.
    pub(super) states: PolicyStates,
    /// What the audit of each policy has found.
    pub(super) audits: BTreeMap<String, AuditState>,
    /// Settings that are not decided yet.
    pub(super) settings: SettingsPreviews,
}

impl PolicyHandovers {
    /// Nothing handed over yet.
    pub(super) fn new(how: Handover, is_leading: bool) -> Self {
        Self {
            how,
            is_leading,
            decided: BTreeMap::new(),
            recorded: BTreeSet::new(),
            withdrawn: BTreeMap::new(),
            held_before: BTreeSet::new(),
            goals: BTreeMap::new(),
            problems: BTreeMap::new(),
            states: PolicyStates::default(),
            audits: BTreeMap::new(),
            settings: SettingsPreviews::default(),
        }
    }

    /// Records a Module. If its status has a policy, the host handed the policy over before it was
    /// restarted.
    pub(super) fn observe(&mut self, module: &Module) {
        self.settings.observe(module);
        let Some(policy) = module.status.as_ref().and_then(|status| status.policy.as_ref()) else {
            return;
        };
        let name = &module.metadata.name;
        self.recorded.insert(name.clone());
        if policy.held_settings.is_some() && !self.decided.contains_key(name) {
            self.held_before.insert(name.clone());
        }
    }

    /// Records a revision, before its policy is decided or withdrawn.
    pub(super) fn observe_revision(&mut self, revision: &Revision) {
        let (name, digest) = (&*revision.module, revision.guest.digest().parse().ok());
        // Another component was previewed as a candidate.
        if self.withdrawn.get(name).is_some_and(|one| Some(*one) != digest) {
            self.withdrawn.remove(name);
        }
        if revision.policy().is_some() {
            return;
        }
        self.held_before.remove(name);
        let decided = self.decided.get(name).map(|record| record.digest);
        if let Some(decided) = decided.filter(|decided| Some(*decided) == digest) {
            self.withdrawn.insert(name.to_owned(), decided);
        }
    }

    /// Whether the Module grants a policy again that it had withdrawn, while the same component
    /// stayed active. The policy denied nothing meanwhile.
    pub(super) fn is_granted_again(&self, record: &PolicyRecord) -> bool {
        !self.decided.contains_key(&record.module)
            && self.withdrawn.get(&record.module) == Some(&record.digest)
    }

    /// Whether the settings of a module were held when the host started.
    pub(super) fn was_held(&self, module: &str) -> bool {
        self.held_before.contains(module)
    }

    /// Forgets why the settings of a module are previewed without a record.
    pub(super) fn forget_held(&mut self, module: &str) {
        self.withdrawn.remove(module);
        self.held_before.remove(module);
    }

    /// Why the record of a module is not written, if it is not.
    pub(super) fn problem(&self, module: &str) -> Option<&str> {
        self.problems.get(module).map(String::as_str)
    }
}
