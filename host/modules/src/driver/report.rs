//! The status of a Module.

use innkeeper_contract::PolicyKind;
use innkeeper_core::{Finalizer, control, foreign};
use serde_json::{Map, Value, json};

use super::message::Report;
use super::state::ModuleState;
use crate::machine::{Candidate, DecidedDigests, HeldCandidate, Machine, REJECTED, Rejection};
use crate::module::{
    CandidateStatus, EarlierRevision, ExampleStatus, KindStatus, PolicyPreviewStatus, PolicyStatus,
    PreviewStatus, RejectedVersion, ReviewExampleStatus,
};
use crate::policy_preview::PolicyPreview;
use crate::revision::{GuestHandle, Revision};
use crate::rollout::Preview;
use crate::source::Digest;

/// The longest message in a status outside of conditions, in bytes: its schema allows three more,
/// for the dots of one that is cut.
const MESSAGE_BYTES_MAX: usize = 4_093;

/// The longest detail of an example of a policy's preview, in bytes: there are many of them.
const DETAIL_BYTES_MAX: usize = 1_024;

/// The name of the ConfigMap, in [`NAMESPACE`](crate::module::NAMESPACE), with the snapshot of a
/// component.
pub fn snapshot_name(module: &str, digest: Digest) -> String {
    format!("{module}-copy-{}", digest.short())
}

impl<G: GuestHandle> ModuleState<G> {
    fn candidate_member(&self, machine: &Machine) -> Option<Value> {
        let candidate = machine.candidate();
        let mut status = CandidateStatus {
            digest: candidate.digest()?.to_string(),
            state: candidate.state().to_owned(),
            version: self.version_of(candidate.digest()?),
            ..CandidateStatus::default()
        };
        if let Some((_, rejection)) = machine.refused() {
            // Each retry goes through the same states: the status does not repeat them.
            if !matches!(candidate, Candidate::Committing(_)) {
                REJECTED.clone_into(&mut status.state);
            }
            (status.reason, status.message) =
                (Some(rejection.reason.clone()), Some(bounded_message(rejection)));
        }
        if let Candidate::Held(_, held) = candidate {
            let HeldCandidate { preview, rejection, .. } = &**held;
            (status.reason, status.message) =
                (Some(rejection.reason.clone()), Some(bounded_message(rejection)));
            let shown = PreviewStatus::of(candidate.digest()?, preview);
            status.primaries = Some(shown.primaries);
            status.previewed = Some(shown.previewed);
            status.creates = Some(shown.creates);
            status.changes = Some(shown.changes);
            status.deletes = Some(shown.deletes);
            status.failures = Some(shown.failures);
            status.examples = shown.examples;
            status.policy = shown.policy;
        }
        serde_json::to_value(status).ok()
    }

    /// The status without a decision for a candidate. It contains a decided rollback: a restarted
    /// host must not return to the failing revision.
    pub(super) fn report(&self) -> Report {
        let persistent = || self.report_with(&self.machine, self.machine.persistent_digests());
        self.rollback_status().unwrap_or_else(persistent)
    }

    /// The status that contains all that is decided.
    pub(super) fn committed_status(&self) -> Report {
        let rolled_back = self.machine.rolled_back();
        let machine = rolled_back.as_ref().unwrap_or(&self.machine);
        self.report_with(machine, machine.decided_digests())
    }

    /// The status that contains a decided rollback, and no decision for a candidate.
    pub(super) fn rollback_status(&self) -> Option<Report> {
        let machine = self.machine.rolled_back()?;
        Some(self.report_with(&machine, machine.persistent_digests()))
    }

    fn report_with(&self, machine: &Machine, decided: DecidedDigests) -> Report {
        let DecidedDigests { active, history, previous } = decided;
        let mut members = Map::new();
        if let Some(digest) = active {
            members.insert("digest".into(), digest.to_string().into());
        }
        if let Some(previous) = previous {
            members.insert("previous".into(), json!(self.earlier_revision(previous)));
        }
        if !history.is_empty() {
            let history = history.into_iter().map(|digest| self.earlier_revision(digest));
            members.insert("history".into(), json!(history.collect::<Vec<_>>()));
        }
        let active = active.map(|digest| digest.to_string());
        let of_active = |one: &&PreviewStatus| Some(&one.digest) == active.as_ref();
        if let Some(preview) = self.previews.iter().find(of_active) {
            members.insert("preview".into(), json!(preview));
        }
        if let Some(candidate) = self.candidate_member(machine) {
            members.insert("candidate".into(), candidate);
        }
        if let Some(change) = machine.held_crds() {
            members.insert("heldCRDChange".into(), change.to_string().into());
        }
        let rejected: Vec<_> = machine.rejected().map(|one| self.rejected(one)).collect();
        if !rejected.is_empty() {
            members.insert("rejected".into(), json!(rejected));
        }
        if let Some(digest) = machine.used_approval() {
            members.insert("usedApproval".into(), digest.to_string().into());
        }
        if let Some(digest) = machine.used_rejection() {
            members.insert("usedRejection".into(), digest.to_string().into());
        }
        if let Some(finalizer) = self.finalizer_of(machine) {
            let finalizer = Finalizer::new(&self.name, Some(&finalizer));
            members.insert("finalizer".into(), finalizer.name().into());
        }
        if let Some(revision) = self.active_of(machine) {
            let manifest = revision.guest.manifest();
            let mut guest = json!({ "name": manifest.name });
            if !manifest.version.is_empty() {
                guest["version"] = manifest.version.clone().into();
            }
            members.insert("guest".into(), guest);
            if let Some(primary) = &manifest.primary {
                members.insert("primary".into(), json!(KindStatus::of(primary)));
                if control::decorates(manifest) {
                    members.insert("decorates".into(), true.into());
                }
            }
            if let Some(selector) = &manifest.selector {
                members.insert("selector".into(), json!(selector));
            }
            if let Some(policy) = policy_status(revision) {
                members.insert("policy".into(), json!(policy));
            }
            members.insert("contract".into(), innkeeper_contract::VERSION.into());
        } else {
            // A restarted host that loads its revision again keeps these members of the status.
            if let Some(primary) = &self.restored.primary {
                members.insert("primary".into(), json!(primary));
            }
            if let Some(policy) = &self.restored.policy {
                members.insert("policy".into(), json!(policy));
            }
            if self.restored.decorates {
                members.insert("decorates".into(), true.into());
            }
            if let Some(selector) = &self.restored.selector {
                members.insert("selector".into(), json!(selector));
            }
        }
        if !self.owned_kinds.is_empty() {
            let kinds: Vec<_> = self.owned_kinds.values().map(|kind| json!(kind)).collect();
            members.insert("ownedKinds".into(), kinds.into());
        }
        Report { generation: machine.generation(), members, conditions: machine.conditions() }
    }
}

impl PreviewStatus {
    fn of(digest: Digest, preview: &Preview) -> Self {
        let Preview {
            primaries,
            previewed,
            objects: _,
            creates,
            changes,
            deletes,
            failures,
            examples,
            policy,
            abandoned: _,
            missing_rights: _,
        } = preview;
        // Names of members of an object are the guest's.
        let visible = |text: &String| foreign::one_line(text, MESSAGE_BYTES_MAX);
        let examples = examples.iter().map(|example| ExampleStatus {
            action: example.change.as_str().to_owned(),
            object: visible(&example.object),
            fields: example.fields.iter().map(visible).collect(),
        });
        Self {
            digest: digest.to_string(),
            primaries: *primaries,
            previewed: *previewed,
            creates: *creates,
            changes: *changes,
            deletes: *deletes,
            failures: *failures,
            examples: examples.collect(),
            policy: policy.as_ref().map(PolicyPreviewStatus::of),
        }
    }
}

impl PolicyPreviewStatus {
    /// The status of a preview. Its texts are a guest's.
    pub fn of(preview: &PolicyPreview) -> Self {
        let visible = |text: &String| foreign::one_line(text, DETAIL_BYTES_MAX);
        let examples = preview.examples.iter().map(|example| ReviewExampleStatus {
            decision: example.change.as_str().to_owned(),
            object: visible(&example.object),
            details: example.details.iter().map(visible).collect(),
        });
        Self {
            objects: preview.objects,
            reviewed: preview.reviewed,
            requests: preview.requests,
            newly_denied: preview.newly_denied,
            newly_allowed: preview.newly_allowed,
            newly_changed: preview.newly_changed,
            newly_failing: preview.newly_failing,
            left_out: preview.left_out.iter().map(visible).collect(),
            examples: examples.collect(),
        }
    }
}

impl<G: GuestHandle> ModuleState<G> {
    /// The version of a revision; empty if it is not known.
    fn version_of(&self, digest: Digest) -> String {
        self.versions.get(&digest).cloned().unwrap_or_default()
    }

    fn earlier_revision(&self, digest: Digest) -> EarlierRevision {
        EarlierRevision {
            digest: digest.to_string(),
            config_map: snapshot_name(&self.name, digest),
            version: self.version_of(digest),
        }
    }

    fn rejected(&self, (digest, rejection): &(Digest, Rejection)) -> RejectedVersion {
        RejectedVersion {
            digest: digest.to_string(),
            reason: rejection.reason.clone(),
            message: bounded_message(rejection),
            version: self.version_of(*digest),
        }
    }

    /// Keeps a preview until it is known whether its candidate becomes active.
    pub(super) fn record_preview(&mut self, digest: Digest, preview: &Preview) {
        let active = self.machine.persistent_digests().active.map(|digest| digest.to_string());
        self.previews.retain(|one| Some(&one.digest) == active.as_ref());
        self.previews.push(PreviewStatus::of(digest, preview));
    }
}

/// What the driver knows of the policy of a revision.
fn policy_status<G: GuestHandle>(revision: &Revision<G>) -> Option<PolicyStatus> {
    let (guest, settings) = revision.policy()?;
    let kind = match guest.kind {
        PolicyKind::Validate => "Validate",
        PolicyKind::Mutate => "Mutate",
    };
    let mode = settings.mode.as_str().to_owned();
    Some(PolicyStatus { kind: kind.to_owned(), mode, ..PolicyStatus::default() })
}

/// A rejection's message, no longer than the schema allows: a guest's texts may be of any length,
/// and the API server would refuse the whole status.
fn bounded_message(rejection: &Rejection) -> String {
    foreign::message(&rejection.message, MESSAGE_BYTES_MAX)
}
