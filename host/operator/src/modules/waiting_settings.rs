//! Changed settings of policies that wait for their preview or an approval.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_cluster::Task;
use innkeeper_modules::module::{APPROVE_ANNOTATION, HeldSettings, PolicyMode};
use innkeeper_modules::{Digest, Module, PolicyPreview, Revision};

use crate::policies::PolicyRecord;

/// Changed settings of a policy that wait for their preview or an approval.
pub(super) struct WaitingSettings {
    /// The record with the new settings.
    pub(super) record: Arc<PolicyRecord>,
    /// The revision with these settings.
    pub(super) revision: Arc<Revision>,
    /// The result of their preview, once it has ended.
    pub(super) found: Option<Found>,
    /// Dropping it ends the preview.
    pub(super) _task: Task<()>,
}

/// The result of a preview of settings.
pub(super) struct Found {
    /// The decisions that differ.
    pub(super) preview: PolicyPreview,
    /// The mode in which the policy reviews meanwhile; `None` if it reviews nothing.
    pub(super) mode: Option<PolicyMode>,
    /// Why the settings need an approval, as the status shows it.
    pub(super) held: HeldSettings,
}

/// The waiting settings of policies, by module.
#[derive(Default)]
pub(super) struct SettingsPreviews {
    pub(super) waiting: BTreeMap<String, WaitingSettings>,
    /// The digest in the annotation of each Module that has one.
    approved: BTreeMap<String, Digest>,
}

impl SettingsPreviews {
    /// Records the digest that a Module approves.
    pub(super) fn observe(&mut self, module: &Module) {
        let name = &module.metadata.name;
        let approved = module.metadata.annotations.get(APPROVE_ANNOTATION);
        match approved.and_then(|text| text.trim().parse().ok()) {
            Some(digest) => drop(self.approved.insert(name.clone(), digest)),
            None => drop(self.approved.remove(name)),
        }
    }

    /// Forgets the settings of a module that wait, and ends their preview.
    pub(super) fn forget(&mut self, module: &str) {
        self.waiting.remove(module);
    }

    /// The settings of a module that need an approval, and the mode with which the policy reviews
    /// meanwhile, if it does.
    pub(super) fn held(&self, module: &str) -> Option<(&HeldSettings, Option<PolicyMode>)> {
        let found = self.waiting.get(module)?.found.as_ref()?;
        Some((&found.held, found.mode))
    }

    /// Whether the annotation of a module approves the settings of a record.
    pub(super) fn is_approved(&self, module: &str, record: &PolicyRecord) -> bool {
        self.approved.get(module) == Some(&record.digest_of_all())
    }
}
