//! The preview of other settings for a policy: parameters, modes, rules and selectors.
//!
//! The component stays the same, so the machine of the module decides nothing. The policy goes on
//! reviewing with the settings before, as its record has them, until the preview of the new ones
//! allows them or a user approves them. So does it after a restart of the host. A policy that was
//! withdrawn and is granted again reviews nothing until then.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::{Event as Notice, EventType};
use innkeeper_core::host_objects::{HOST_NAMESPACE, policy_object_name};
use innkeeper_core::{ObjectKey, foreign};
use innkeeper_modules::module::{HeldSettings, PolicyMode, PolicyPreviewStatus};
use innkeeper_modules::{PolicyPreview, Revision, Rollout, Strategy};

use super::event::{CONFIG_MAP, SupervisorEvent};
use super::policy_opening::PolicyOpening;
use super::supervisor::Supervisor;
use super::waiting_settings::{Found, WaitingSettings};
use crate::policies::PolicyRecord;
use crate::preview::policy::preview_policy;
use crate::shared::Shared;

/// The wait before a preview that could not be made is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// The longest message of held settings, in bytes: the schema of the status allows three more.
const MESSAGE_BYTES_MAX: usize = 4_093;

impl Supervisor {
    /// Whether the settings of a record are to be previewed before replicas review with them: the
    /// policy may deny with them, and the replicas review with other ones (as far as is known).
    pub(super) fn needs_settings_preview(&self, record: &PolicyRecord, rollout: &Rollout) -> bool {
        let name = &record.module;
        if !record.settings.policy.enforces()
            || rollout.strategy == Strategy::Immediate
            || self.policies.settings.is_approved(name, record)
        {
            return false;
        }
        match self.policies.decided.get(name) {
            Some(decided) => has_other_settings(decided, record),
            // The leader before may have left a record.
            None => self.policies.recorded.contains(name) || self.policies.is_granted_again(record),
        }
    }

    /// Previews the settings of a record; its result returns as an event.
    pub(super) fn preview_settings(
        &mut self,
        revision: &Arc<Revision>,
        record: &Arc<PolicyRecord>,
    ) {
        let name = record.module.clone();
        if let Some(waiting) = self.policies.settings.waiting.get_mut(&name)
            && waiting.record == *record
        {
            // Only the limits of the rollout may be others.
            waiting.revision = revision.clone();
            if waiting.found.is_some() {
                let event = SupervisorEvent::SettingsChecked(name.clone());
                let _ = self.outbox.send(event);
            }
            return;
        }
        tracing::info!(module = name, record = record.id(), "preview of settings started");
        let account = record.settings.service_account.as_deref();
        let opening = self.policy_opening(&name, account);
        let decided = self.policies.decided.get(&name).cloned();
        let (shared, outbox) = (self.shared.clone(), self.outbox.clone());
        let job = SettingsJob {
            record: record.clone(),
            revision: revision.clone(),
            opening,
            is_granted_again: self.policies.is_granted_again(record),
            was_held: self.policies.was_held(&name),
        };
        let module = name.clone();
        let task = self.shared.env.spawn("preview settings", async move {
            let preview = loop {
                match job.run(&shared, decided.clone()).await {
                    Ok(preview) => break preview,
                    Err(error) => {
                        tracing::warn!(module, "settings of the policy not previewed: {error}; the host tries again, and the policy reviews as before");
                        shared.env.sleep(RETRY).await;
                    }
                }
            };
            let record = job.record.clone();
            let preview = preview.map(Box::new);
            let _ = outbox.send(SupervisorEvent::SettingsPreviewed { module, record, preview });
        });
        let (record, revision) = (record.clone(), revision.clone());
        let waiting = WaitingSettings { record, revision, found: None, _task: task };
        self.policies.settings.waiting.insert(name, waiting);
    }

    /// Takes what the preview of settings found: decides for them, or holds them.
    pub(super) async fn settings_previewed(
        &mut self,
        name: &str,
        record: &Arc<PolicyRecord>,
        preview: Option<Box<(PolicyPreview, Option<PolicyMode>)>>,
    ) {
        let Some(waiting) = self.policies.settings.waiting.get_mut(name) else { return };
        if waiting.record != *record {
            return;
        }
        let Some((preview, mode)) = preview.map(|found| *found) else {
            return self.decide_settings(name).await;
        };
        let held = HeldSettings {
            digest: record.digest_of_all().to_string(),
            reason: String::new(),
            message: String::new(),
            preview: PolicyPreviewStatus::of(&preview),
        };
        waiting.found = Some(Found { preview, mode, held });
        self.check_settings(name).await;
    }

    /// Compares what the preview of settings found with what the Module allows now.
    pub(super) async fn check_settings(&mut self, name: &str) {
        let settings = &mut self.policies.settings;
        let is_approved = settings
            .waiting
            .get(name)
            .is_some_and(|waiting| settings.is_approved(name, &waiting.record));
        let Some(waiting) = settings.waiting.get_mut(name) else { return };
        let Some(found) = &mut waiting.found else {
            // An approval in advance: nothing has to be known.
            if is_approved {
                self.decide_settings(name).await;
            }
            return;
        };
        let rollout = &waiting.revision.spec.rollout;
        let rejection = found.preview.held_by(rollout.newly_denied_max, rollout.failures_max);
        let Some(rejection) = rejection.filter(|_| !is_approved) else {
            return self.decide_settings(name).await;
        };
        let message = foreign::message(&rejection.message, MESSAGE_BYTES_MAX);
        if found.held.message == message {
            return;
        }
        found.held.reason.clone_from(&rejection.reason);
        found.held.message = message;
        let meanwhile = match found.mode {
            Some(_) => "it reviews with those before",
            None => "it reviews nothing until they are approved",
        };
        let text =
            format!("other settings of the policy are held: {}; {meanwhile}", rejection.message);
        let notice = Notice { type_: EventType::Warning, reason: "Held".to_owned(), message: text };
        self.publish_event(name, &notice).await;
        self.write_status(name).await;
    }

    /// Has the replicas review with settings that waited.
    async fn decide_settings(&mut self, name: &str) {
        let Some(waiting) = self.policies.settings.waiting.remove(name) else { return };
        self.decide_record(&waiting.revision, &waiting.record);
        self.write_status(name).await;
    }
}

/// A preview of settings.
struct SettingsJob {
    record: Arc<PolicyRecord>,
    revision: Arc<Revision>,
    opening: PolicyOpening,
    /// Nothing is denied now, whatever record there is.
    is_granted_again: bool,
    /// The settings were held before, so without a record nothing is denied now.
    was_held: bool,
}

impl SettingsJob {
    /// What the settings decide otherwise than those in the record before, and the mode of these,
    /// if there are some; `None` if there is nothing to compare. Without `decided` it reads the
    /// record that the leader before has written.
    async fn run(
        &self,
        shared: &Shared,
        decided: Option<Arc<PolicyRecord>>,
    ) -> Result<Option<(PolicyPreview, Option<PolicyMode>)>, ApiError> {
        let before = match decided {
            Some(decided) => Some(decided),
            None if self.is_granted_again => None,
            None => read_record(self.opening.host(), &self.record.module).await?,
        };
        let is_first = before.is_none() && (self.is_granted_again || self.was_held);
        let before = before.filter(|before| has_other_settings(before, &self.record));
        if before.is_none() && !is_first {
            return Ok(None);
        }
        let guest = &self.revision.guest;
        let Some(candidate) = self.opening.open(&self.record, guest) else { return Ok(None) };
        let active = before.as_ref().and_then(|before| self.opening.open(before, guest));
        let active = active.map(|active| active.policy);
        let preview = preview_policy(shared, &candidate, active.as_ref()).await?;
        Ok(Some((preview, before.map(|before| before.settings.policy.mode))))
    }
}

/// Whether two records of one component differ in settings that decide about requests.
fn has_other_settings(before: &PolicyRecord, after: &PolicyRecord) -> bool {
    let (old, new) = (&before.settings, &after.settings);
    let is_same = old.parameters == new.parameters
        && old.policy == new.policy
        && old.namespaces == new.namespaces
        && old.allow_finalizers == new.allow_finalizers;
    before.digest == after.digest && !is_same
}

/// The record of a module in the cluster; `None` if there is none that can be read.
async fn read_record(
    host: &ApiClient,
    module: &str,
) -> Result<Option<Arc<PolicyRecord>>, ApiError> {
    let namespace = host.host_namespace().unwrap_or(HOST_NAMESPACE);
    let key = ObjectKey::new(namespace, &policy_object_name(module));
    match host.get(&CONFIG_MAP, &key).await {
        Ok(object) => Ok(PolicyRecord::read(&object).ok().map(Arc::new)),
        Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
